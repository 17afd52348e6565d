// Generated from `proto/querier/v1/querier.proto` by `UPDATE_EXPECT=1 cargo test --test integration protos`: do not edit.

impl serde::Serialize for AnalyzeQueryRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.start != 0 {
            len += 1;
        }
        if self.end != 0 {
            len += 1;
        }
        if !self.query.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.AnalyzeQueryRequest", len)?;
        if self.start != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("start", ToString::to_string(&self.start).as_str())?;
        }
        if self.end != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("end", ToString::to_string(&self.end).as_str())?;
        }
        if !self.query.is_empty() {
            struct_ser.serialize_field("query", &self.query)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for AnalyzeQueryRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "start",
            "end",
            "query",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Start,
            End,
            Query,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "start" => Ok(GeneratedField::Start),
                            "end" => Ok(GeneratedField::End),
                            "query" => Ok(GeneratedField::Query),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = AnalyzeQueryRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.AnalyzeQueryRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<AnalyzeQueryRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut start__ = None;
                let mut end__ = None;
                let mut query__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Start => {
                            if start__.is_some() {
                                return Err(serde::de::Error::duplicate_field("start"));
                            }
                            start__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::End => {
                            if end__.is_some() {
                                return Err(serde::de::Error::duplicate_field("end"));
                            }
                            end__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Query => {
                            if query__.is_some() {
                                return Err(serde::de::Error::duplicate_field("query"));
                            }
                            query__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(AnalyzeQueryRequest {
                    start: start__.unwrap_or_default(),
                    end: end__.unwrap_or_default(),
                    query: query__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.AnalyzeQueryRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for AnalyzeQueryResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.query_scopes.is_empty() {
            len += 1;
        }
        if self.query_impact.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.AnalyzeQueryResponse", len)?;
        if !self.query_scopes.is_empty() {
            struct_ser.serialize_field("queryScopes", &self.query_scopes)?;
        }
        if let Some(v) = self.query_impact.as_ref() {
            struct_ser.serialize_field("queryImpact", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for AnalyzeQueryResponse {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "query_scopes",
            "queryScopes",
            "query_impact",
            "queryImpact",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            QueryScopes,
            QueryImpact,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "queryScopes" | "query_scopes" => Ok(GeneratedField::QueryScopes),
                            "queryImpact" | "query_impact" => Ok(GeneratedField::QueryImpact),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = AnalyzeQueryResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.AnalyzeQueryResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<AnalyzeQueryResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut query_scopes__ = None;
                let mut query_impact__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::QueryScopes => {
                            if query_scopes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("queryScopes"));
                            }
                            query_scopes__ = Some(map_.next_value()?);
                        }
                        GeneratedField::QueryImpact => {
                            if query_impact__.is_some() {
                                return Err(serde::de::Error::duplicate_field("queryImpact"));
                            }
                            query_impact__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(AnalyzeQueryResponse {
                    query_scopes: query_scopes__.unwrap_or_default(),
                    query_impact: query_impact__,
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.AnalyzeQueryResponse", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for AsyncQueryRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.request_id.is_empty() {
            len += 1;
        }
        if self.r#type != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.AsyncQueryRequest", len)?;
        if !self.request_id.is_empty() {
            struct_ser.serialize_field("requestId", &self.request_id)?;
        }
        if self.r#type != 0 {
            let v = AsyncQueryType::try_from(self.r#type)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.r#type)))?;
            struct_ser.serialize_field("type", &v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for AsyncQueryRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "request_id",
            "requestId",
            "type",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            RequestId,
            Type,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "requestId" | "request_id" => Ok(GeneratedField::RequestId),
                            "type" => Ok(GeneratedField::Type),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = AsyncQueryRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.AsyncQueryRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<AsyncQueryRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut request_id__ = None;
                let mut r#type__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::RequestId => {
                            if request_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requestId"));
                            }
                            request_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Type => {
                            if r#type__.is_some() {
                                return Err(serde::de::Error::duplicate_field("type"));
                            }
                            r#type__ = Some(map_.next_value::<AsyncQueryType>()? as i32);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(AsyncQueryRequest {
                    request_id: request_id__.unwrap_or_default(),
                    r#type: r#type__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.AsyncQueryRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for AsyncQueryResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.request_id.is_empty() {
            len += 1;
        }
        if self.status != 0 {
            len += 1;
        }
        if !self.error_message.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.AsyncQueryResponse", len)?;
        if !self.request_id.is_empty() {
            struct_ser.serialize_field("requestId", &self.request_id)?;
        }
        if self.status != 0 {
            let v = AsyncQueryStatus::try_from(self.status)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.status)))?;
            struct_ser.serialize_field("status", &v)?;
        }
        if !self.error_message.is_empty() {
            struct_ser.serialize_field("errorMessage", &self.error_message)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for AsyncQueryResponse {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "request_id",
            "requestId",
            "status",
            "error_message",
            "errorMessage",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            RequestId,
            Status,
            ErrorMessage,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "requestId" | "request_id" => Ok(GeneratedField::RequestId),
                            "status" => Ok(GeneratedField::Status),
                            "errorMessage" | "error_message" => Ok(GeneratedField::ErrorMessage),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = AsyncQueryResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.AsyncQueryResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<AsyncQueryResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut request_id__ = None;
                let mut status__ = None;
                let mut error_message__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::RequestId => {
                            if request_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("requestId"));
                            }
                            request_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Status => {
                            if status__.is_some() {
                                return Err(serde::de::Error::duplicate_field("status"));
                            }
                            status__ = Some(map_.next_value::<AsyncQueryStatus>()? as i32);
                        }
                        GeneratedField::ErrorMessage => {
                            if error_message__.is_some() {
                                return Err(serde::de::Error::duplicate_field("errorMessage"));
                            }
                            error_message__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(AsyncQueryResponse {
                    request_id: request_id__.unwrap_or_default(),
                    status: status__.unwrap_or_default(),
                    error_message: error_message__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.AsyncQueryResponse", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for AsyncQueryStatus {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unknown => "ASYNC_QUERY_STATUS_UNKNOWN",
            Self::InProgress => "ASYNC_QUERY_STATUS_IN_PROGRESS",
            Self::Success => "ASYNC_QUERY_STATUS_SUCCESS",
            Self::Failure => "ASYNC_QUERY_STATUS_FAILURE",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for AsyncQueryStatus {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "ASYNC_QUERY_STATUS_UNKNOWN",
            "ASYNC_QUERY_STATUS_IN_PROGRESS",
            "ASYNC_QUERY_STATUS_SUCCESS",
            "ASYNC_QUERY_STATUS_FAILURE",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = AsyncQueryStatus;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok().or_else(|| Some(AsyncQueryStatus::default())))
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok().or_else(|| Some(AsyncQueryStatus::default())))
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "ASYNC_QUERY_STATUS_UNKNOWN" => Ok(AsyncQueryStatus::Unknown),
                    "ASYNC_QUERY_STATUS_IN_PROGRESS" => Ok(AsyncQueryStatus::InProgress),
                    "ASYNC_QUERY_STATUS_SUCCESS" => Ok(AsyncQueryStatus::Success),
                    "ASYNC_QUERY_STATUS_FAILURE" => Ok(AsyncQueryStatus::Failure),
                    _ => Ok(AsyncQueryStatus::default()),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for AsyncQueryType {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Disabled => "ASYNC_QUERY_TYPE_DISABLED",
            Self::Force => "ASYNC_QUERY_TYPE_FORCE",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for AsyncQueryType {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "ASYNC_QUERY_TYPE_DISABLED",
            "ASYNC_QUERY_TYPE_FORCE",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = AsyncQueryType;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok().or_else(|| Some(AsyncQueryType::default())))
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok().or_else(|| Some(AsyncQueryType::default())))
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "ASYNC_QUERY_TYPE_DISABLED" => Ok(AsyncQueryType::Disabled),
                    "ASYNC_QUERY_TYPE_FORCE" => Ok(AsyncQueryType::Force),
                    _ => Ok(AsyncQueryType::default()),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for DiffRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.left.is_some() {
            len += 1;
        }
        if self.right.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.DiffRequest", len)?;
        if let Some(v) = self.left.as_ref() {
            struct_ser.serialize_field("left", v)?;
        }
        if let Some(v) = self.right.as_ref() {
            struct_ser.serialize_field("right", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for DiffRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "left",
            "right",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Left,
            Right,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "left" => Ok(GeneratedField::Left),
                            "right" => Ok(GeneratedField::Right),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = DiffRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.DiffRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<DiffRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut left__ = None;
                let mut right__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Left => {
                            if left__.is_some() {
                                return Err(serde::de::Error::duplicate_field("left"));
                            }
                            left__ = map_.next_value()?;
                        }
                        GeneratedField::Right => {
                            if right__.is_some() {
                                return Err(serde::de::Error::duplicate_field("right"));
                            }
                            right__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(DiffRequest {
                    left: left__,
                    right: right__,
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.DiffRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for DiffResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.flamegraph.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.DiffResponse", len)?;
        if let Some(v) = self.flamegraph.as_ref() {
            struct_ser.serialize_field("flamegraph", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for DiffResponse {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "flamegraph",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Flamegraph,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "flamegraph" => Ok(GeneratedField::Flamegraph),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = DiffResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.DiffResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<DiffResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut flamegraph__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Flamegraph => {
                            if flamegraph__.is_some() {
                                return Err(serde::de::Error::duplicate_field("flamegraph"));
                            }
                            flamegraph__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(DiffResponse {
                    flamegraph: flamegraph__,
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.DiffResponse", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for FlameGraph {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.names.is_empty() {
            len += 1;
        }
        if !self.levels.is_empty() {
            len += 1;
        }
        if self.total != 0 {
            len += 1;
        }
        if self.max_self != 0 {
            len += 1;
        }
        if !self.files.is_empty() {
            len += 1;
        }
        if !self.lines.is_empty() {
            len += 1;
        }
        if !self.mappings.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.FlameGraph", len)?;
        if !self.names.is_empty() {
            struct_ser.serialize_field("names", &self.names)?;
        }
        if !self.levels.is_empty() {
            struct_ser.serialize_field("levels", &self.levels)?;
        }
        if self.total != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("total", ToString::to_string(&self.total).as_str())?;
        }
        if self.max_self != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("maxSelf", ToString::to_string(&self.max_self).as_str())?;
        }
        if !self.files.is_empty() {
            struct_ser.serialize_field("files", &self.files)?;
        }
        if !self.lines.is_empty() {
            struct_ser.serialize_field("lines", &self.lines)?;
        }
        if !self.mappings.is_empty() {
            struct_ser.serialize_field("mappings", &self.mappings)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for FlameGraph {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "names",
            "levels",
            "total",
            "max_self",
            "maxSelf",
            "files",
            "lines",
            "mappings",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Names,
            Levels,
            Total,
            MaxSelf,
            Files,
            Lines,
            Mappings,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "names" => Ok(GeneratedField::Names),
                            "levels" => Ok(GeneratedField::Levels),
                            "total" => Ok(GeneratedField::Total),
                            "maxSelf" | "max_self" => Ok(GeneratedField::MaxSelf),
                            "files" => Ok(GeneratedField::Files),
                            "lines" => Ok(GeneratedField::Lines),
                            "mappings" => Ok(GeneratedField::Mappings),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = FlameGraph;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.FlameGraph")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<FlameGraph, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut names__ = None;
                let mut levels__ = None;
                let mut total__ = None;
                let mut max_self__ = None;
                let mut files__ = None;
                let mut lines__ = None;
                let mut mappings__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Names => {
                            if names__.is_some() {
                                return Err(serde::de::Error::duplicate_field("names"));
                            }
                            names__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Levels => {
                            if levels__.is_some() {
                                return Err(serde::de::Error::duplicate_field("levels"));
                            }
                            levels__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Total => {
                            if total__.is_some() {
                                return Err(serde::de::Error::duplicate_field("total"));
                            }
                            total__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::MaxSelf => {
                            if max_self__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxSelf"));
                            }
                            max_self__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Files => {
                            if files__.is_some() {
                                return Err(serde::de::Error::duplicate_field("files"));
                            }
                            files__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Lines => {
                            if lines__.is_some() {
                                return Err(serde::de::Error::duplicate_field("lines"));
                            }
                            lines__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Mappings => {
                            if mappings__.is_some() {
                                return Err(serde::de::Error::duplicate_field("mappings"));
                            }
                            mappings__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(FlameGraph {
                    names: names__.unwrap_or_default(),
                    levels: levels__.unwrap_or_default(),
                    total: total__.unwrap_or_default(),
                    max_self: max_self__.unwrap_or_default(),
                    files: files__.unwrap_or_default(),
                    lines: lines__.unwrap_or_default(),
                    mappings: mappings__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.FlameGraph", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for FlameGraphDiff {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.names.is_empty() {
            len += 1;
        }
        if !self.levels.is_empty() {
            len += 1;
        }
        if self.total != 0 {
            len += 1;
        }
        if self.max_self != 0 {
            len += 1;
        }
        if self.left_ticks != 0 {
            len += 1;
        }
        if self.right_ticks != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.FlameGraphDiff", len)?;
        if !self.names.is_empty() {
            struct_ser.serialize_field("names", &self.names)?;
        }
        if !self.levels.is_empty() {
            struct_ser.serialize_field("levels", &self.levels)?;
        }
        if self.total != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("total", ToString::to_string(&self.total).as_str())?;
        }
        if self.max_self != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("maxSelf", ToString::to_string(&self.max_self).as_str())?;
        }
        if self.left_ticks != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("leftTicks", ToString::to_string(&self.left_ticks).as_str())?;
        }
        if self.right_ticks != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("rightTicks", ToString::to_string(&self.right_ticks).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for FlameGraphDiff {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "names",
            "levels",
            "total",
            "max_self",
            "maxSelf",
            "leftTicks",
            "rightTicks",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Names,
            Levels,
            Total,
            MaxSelf,
            LeftTicks,
            RightTicks,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "names" => Ok(GeneratedField::Names),
                            "levels" => Ok(GeneratedField::Levels),
                            "total" => Ok(GeneratedField::Total),
                            "maxSelf" | "max_self" => Ok(GeneratedField::MaxSelf),
                            "leftTicks" => Ok(GeneratedField::LeftTicks),
                            "rightTicks" => Ok(GeneratedField::RightTicks),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = FlameGraphDiff;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.FlameGraphDiff")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<FlameGraphDiff, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut names__ = None;
                let mut levels__ = None;
                let mut total__ = None;
                let mut max_self__ = None;
                let mut left_ticks__ = None;
                let mut right_ticks__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Names => {
                            if names__.is_some() {
                                return Err(serde::de::Error::duplicate_field("names"));
                            }
                            names__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Levels => {
                            if levels__.is_some() {
                                return Err(serde::de::Error::duplicate_field("levels"));
                            }
                            levels__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Total => {
                            if total__.is_some() {
                                return Err(serde::de::Error::duplicate_field("total"));
                            }
                            total__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::MaxSelf => {
                            if max_self__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxSelf"));
                            }
                            max_self__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::LeftTicks => {
                            if left_ticks__.is_some() {
                                return Err(serde::de::Error::duplicate_field("leftTicks"));
                            }
                            left_ticks__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::RightTicks => {
                            if right_ticks__.is_some() {
                                return Err(serde::de::Error::duplicate_field("rightTicks"));
                            }
                            right_ticks__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(FlameGraphDiff {
                    names: names__.unwrap_or_default(),
                    levels: levels__.unwrap_or_default(),
                    total: total__.unwrap_or_default(),
                    max_self: max_self__.unwrap_or_default(),
                    left_ticks: left_ticks__.unwrap_or_default(),
                    right_ticks: right_ticks__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.FlameGraphDiff", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for HeatmapQueryType {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "HEATMAP_QUERY_TYPE_UNSPECIFIED",
            Self::Individual => "HEATMAP_QUERY_TYPE_INDIVIDUAL",
            Self::Span => "HEATMAP_QUERY_TYPE_SPAN",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for HeatmapQueryType {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "HEATMAP_QUERY_TYPE_UNSPECIFIED",
            "HEATMAP_QUERY_TYPE_INDIVIDUAL",
            "HEATMAP_QUERY_TYPE_SPAN",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = HeatmapQueryType;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok().or_else(|| Some(HeatmapQueryType::default())))
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok().or_else(|| Some(HeatmapQueryType::default())))
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "HEATMAP_QUERY_TYPE_UNSPECIFIED" => Ok(HeatmapQueryType::Unspecified),
                    "HEATMAP_QUERY_TYPE_INDIVIDUAL" => Ok(HeatmapQueryType::Individual),
                    "HEATMAP_QUERY_TYPE_SPAN" => Ok(HeatmapQueryType::Span),
                    _ => Ok(HeatmapQueryType::default()),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for Level {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.values.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.Level", len)?;
        if !self.values.is_empty() {
            struct_ser.serialize_field("values", &self.values.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Level {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "values",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Values,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "values" => Ok(GeneratedField::Values),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Level;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.Level")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Level, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut values__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Values => {
                            if values__.is_some() {
                                return Err(serde::de::Error::duplicate_field("values"));
                            }
                            values__ = 
                                Some(map_.next_value::<Vec<::pbjson::private::NumberDeserialize<_>>>()?
                                    .into_iter().map(|x| x.0).collect())
                            ;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(Level {
                    values: values__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.Level", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for PprofProfile {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.profile.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.PprofProfile", len)?;
        if let Some(v) = self.profile.as_ref() {
            struct_ser.serialize_field("profile", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for PprofProfile {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "profile",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Profile,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "profile" => Ok(GeneratedField::Profile),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = PprofProfile;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.PprofProfile")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<PprofProfile, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut profile__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Profile => {
                            if profile__.is_some() {
                                return Err(serde::de::Error::duplicate_field("profile"));
                            }
                            profile__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(PprofProfile {
                    profile: profile__,
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.PprofProfile", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ProfileFormat {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "PROFILE_FORMAT_UNSPECIFIED",
            Self::Flamegraph => "PROFILE_FORMAT_FLAMEGRAPH",
            Self::Tree => "PROFILE_FORMAT_TREE",
            Self::Dot => "PROFILE_FORMAT_DOT",
            Self::Pprof => "PROFILE_FORMAT_PPROF",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for ProfileFormat {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "PROFILE_FORMAT_UNSPECIFIED",
            "PROFILE_FORMAT_FLAMEGRAPH",
            "PROFILE_FORMAT_TREE",
            "PROFILE_FORMAT_DOT",
            "PROFILE_FORMAT_PPROF",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = ProfileFormat;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok().or_else(|| Some(ProfileFormat::default())))
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok().or_else(|| Some(ProfileFormat::default())))
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "PROFILE_FORMAT_UNSPECIFIED" => Ok(ProfileFormat::Unspecified),
                    "PROFILE_FORMAT_FLAMEGRAPH" => Ok(ProfileFormat::Flamegraph),
                    "PROFILE_FORMAT_TREE" => Ok(ProfileFormat::Tree),
                    "PROFILE_FORMAT_DOT" => Ok(ProfileFormat::Dot),
                    "PROFILE_FORMAT_PPROF" => Ok(ProfileFormat::Pprof),
                    _ => Ok(ProfileFormat::default()),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for ProfileTypesRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.start != 0 {
            len += 1;
        }
        if self.end != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.ProfileTypesRequest", len)?;
        if self.start != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("start", ToString::to_string(&self.start).as_str())?;
        }
        if self.end != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("end", ToString::to_string(&self.end).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ProfileTypesRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "start",
            "end",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Start,
            End,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "start" => Ok(GeneratedField::Start),
                            "end" => Ok(GeneratedField::End),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ProfileTypesRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.ProfileTypesRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ProfileTypesRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut start__ = None;
                let mut end__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Start => {
                            if start__.is_some() {
                                return Err(serde::de::Error::duplicate_field("start"));
                            }
                            start__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::End => {
                            if end__.is_some() {
                                return Err(serde::de::Error::duplicate_field("end"));
                            }
                            end__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ProfileTypesRequest {
                    start: start__.unwrap_or_default(),
                    end: end__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.ProfileTypesRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ProfileTypesResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.profile_types.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.ProfileTypesResponse", len)?;
        if !self.profile_types.is_empty() {
            struct_ser.serialize_field("profileTypes", &self.profile_types)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ProfileTypesResponse {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "profile_types",
            "profileTypes",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ProfileTypes,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "profileTypes" | "profile_types" => Ok(GeneratedField::ProfileTypes),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ProfileTypesResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.ProfileTypesResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ProfileTypesResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut profile_types__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ProfileTypes => {
                            if profile_types__.is_some() {
                                return Err(serde::de::Error::duplicate_field("profileTypes"));
                            }
                            profile_types__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ProfileTypesResponse {
                    profile_types: profile_types__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.ProfileTypesResponse", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for QueryImpact {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.total_bytes_in_time_range != 0 {
            len += 1;
        }
        if self.total_queried_series != 0 {
            len += 1;
        }
        if self.deduplication_needed {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.QueryImpact", len)?;
        if self.total_bytes_in_time_range != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("totalBytesInTimeRange", ToString::to_string(&self.total_bytes_in_time_range).as_str())?;
        }
        if self.total_queried_series != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("totalQueriedSeries", ToString::to_string(&self.total_queried_series).as_str())?;
        }
        if self.deduplication_needed {
            struct_ser.serialize_field("deduplicationNeeded", &self.deduplication_needed)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for QueryImpact {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "total_bytes_in_time_range",
            "totalBytesInTimeRange",
            "total_queried_series",
            "totalQueriedSeries",
            "deduplication_needed",
            "deduplicationNeeded",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            TotalBytesInTimeRange,
            TotalQueriedSeries,
            DeduplicationNeeded,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "totalBytesInTimeRange" | "total_bytes_in_time_range" => Ok(GeneratedField::TotalBytesInTimeRange),
                            "totalQueriedSeries" | "total_queried_series" => Ok(GeneratedField::TotalQueriedSeries),
                            "deduplicationNeeded" | "deduplication_needed" => Ok(GeneratedField::DeduplicationNeeded),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = QueryImpact;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.QueryImpact")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<QueryImpact, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut total_bytes_in_time_range__ = None;
                let mut total_queried_series__ = None;
                let mut deduplication_needed__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::TotalBytesInTimeRange => {
                            if total_bytes_in_time_range__.is_some() {
                                return Err(serde::de::Error::duplicate_field("totalBytesInTimeRange"));
                            }
                            total_bytes_in_time_range__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::TotalQueriedSeries => {
                            if total_queried_series__.is_some() {
                                return Err(serde::de::Error::duplicate_field("totalQueriedSeries"));
                            }
                            total_queried_series__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::DeduplicationNeeded => {
                            if deduplication_needed__.is_some() {
                                return Err(serde::de::Error::duplicate_field("deduplicationNeeded"));
                            }
                            deduplication_needed__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(QueryImpact {
                    total_bytes_in_time_range: total_bytes_in_time_range__.unwrap_or_default(),
                    total_queried_series: total_queried_series__.unwrap_or_default(),
                    deduplication_needed: deduplication_needed__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.QueryImpact", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for QueryScope {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.component_type.is_empty() {
            len += 1;
        }
        if self.component_count != 0 {
            len += 1;
        }
        if self.block_count != 0 {
            len += 1;
        }
        if self.series_count != 0 {
            len += 1;
        }
        if self.profile_count != 0 {
            len += 1;
        }
        if self.sample_count != 0 {
            len += 1;
        }
        if self.index_bytes != 0 {
            len += 1;
        }
        if self.profile_bytes != 0 {
            len += 1;
        }
        if self.symbol_bytes != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.QueryScope", len)?;
        if !self.component_type.is_empty() {
            struct_ser.serialize_field("componentType", &self.component_type)?;
        }
        if self.component_count != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("componentCount", ToString::to_string(&self.component_count).as_str())?;
        }
        if self.block_count != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("blockCount", ToString::to_string(&self.block_count).as_str())?;
        }
        if self.series_count != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("seriesCount", ToString::to_string(&self.series_count).as_str())?;
        }
        if self.profile_count != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("profileCount", ToString::to_string(&self.profile_count).as_str())?;
        }
        if self.sample_count != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("sampleCount", ToString::to_string(&self.sample_count).as_str())?;
        }
        if self.index_bytes != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("indexBytes", ToString::to_string(&self.index_bytes).as_str())?;
        }
        if self.profile_bytes != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("profileBytes", ToString::to_string(&self.profile_bytes).as_str())?;
        }
        if self.symbol_bytes != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("symbolBytes", ToString::to_string(&self.symbol_bytes).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for QueryScope {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "component_type",
            "componentType",
            "component_count",
            "componentCount",
            "block_count",
            "blockCount",
            "series_count",
            "seriesCount",
            "profile_count",
            "profileCount",
            "sample_count",
            "sampleCount",
            "index_bytes",
            "indexBytes",
            "profile_bytes",
            "profileBytes",
            "symbol_bytes",
            "symbolBytes",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ComponentType,
            ComponentCount,
            BlockCount,
            SeriesCount,
            ProfileCount,
            SampleCount,
            IndexBytes,
            ProfileBytes,
            SymbolBytes,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "componentType" | "component_type" => Ok(GeneratedField::ComponentType),
                            "componentCount" | "component_count" => Ok(GeneratedField::ComponentCount),
                            "blockCount" | "block_count" => Ok(GeneratedField::BlockCount),
                            "seriesCount" | "series_count" => Ok(GeneratedField::SeriesCount),
                            "profileCount" | "profile_count" => Ok(GeneratedField::ProfileCount),
                            "sampleCount" | "sample_count" => Ok(GeneratedField::SampleCount),
                            "indexBytes" | "index_bytes" => Ok(GeneratedField::IndexBytes),
                            "profileBytes" | "profile_bytes" => Ok(GeneratedField::ProfileBytes),
                            "symbolBytes" | "symbol_bytes" => Ok(GeneratedField::SymbolBytes),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = QueryScope;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.QueryScope")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<QueryScope, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut component_type__ = None;
                let mut component_count__ = None;
                let mut block_count__ = None;
                let mut series_count__ = None;
                let mut profile_count__ = None;
                let mut sample_count__ = None;
                let mut index_bytes__ = None;
                let mut profile_bytes__ = None;
                let mut symbol_bytes__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ComponentType => {
                            if component_type__.is_some() {
                                return Err(serde::de::Error::duplicate_field("componentType"));
                            }
                            component_type__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ComponentCount => {
                            if component_count__.is_some() {
                                return Err(serde::de::Error::duplicate_field("componentCount"));
                            }
                            component_count__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::BlockCount => {
                            if block_count__.is_some() {
                                return Err(serde::de::Error::duplicate_field("blockCount"));
                            }
                            block_count__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::SeriesCount => {
                            if series_count__.is_some() {
                                return Err(serde::de::Error::duplicate_field("seriesCount"));
                            }
                            series_count__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::ProfileCount => {
                            if profile_count__.is_some() {
                                return Err(serde::de::Error::duplicate_field("profileCount"));
                            }
                            profile_count__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::SampleCount => {
                            if sample_count__.is_some() {
                                return Err(serde::de::Error::duplicate_field("sampleCount"));
                            }
                            sample_count__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::IndexBytes => {
                            if index_bytes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("indexBytes"));
                            }
                            index_bytes__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::ProfileBytes => {
                            if profile_bytes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("profileBytes"));
                            }
                            profile_bytes__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::SymbolBytes => {
                            if symbol_bytes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("symbolBytes"));
                            }
                            symbol_bytes__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(QueryScope {
                    component_type: component_type__.unwrap_or_default(),
                    component_count: component_count__.unwrap_or_default(),
                    block_count: block_count__.unwrap_or_default(),
                    series_count: series_count__.unwrap_or_default(),
                    profile_count: profile_count__.unwrap_or_default(),
                    sample_count: sample_count__.unwrap_or_default(),
                    index_bytes: index_bytes__.unwrap_or_default(),
                    profile_bytes: profile_bytes__.unwrap_or_default(),
                    symbol_bytes: symbol_bytes__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.QueryScope", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SelectHeatmapRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.profile_type_id.is_empty() {
            len += 1;
        }
        if !self.label_selector.is_empty() {
            len += 1;
        }
        if self.start != 0 {
            len += 1;
        }
        if self.end != 0 {
            len += 1;
        }
        if self.step != 0. {
            len += 1;
        }
        if !self.group_by.is_empty() {
            len += 1;
        }
        if self.query_type != 0 {
            len += 1;
        }
        if self.exemplar_type != 0 {
            len += 1;
        }
        if self.limit.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.SelectHeatmapRequest", len)?;
        if !self.profile_type_id.is_empty() {
            struct_ser.serialize_field("profileTypeID", &self.profile_type_id)?;
        }
        if !self.label_selector.is_empty() {
            struct_ser.serialize_field("labelSelector", &self.label_selector)?;
        }
        if self.start != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("start", ToString::to_string(&self.start).as_str())?;
        }
        if self.end != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("end", ToString::to_string(&self.end).as_str())?;
        }
        if self.step != 0. {
            struct_ser.serialize_field("step", &self.step)?;
        }
        if !self.group_by.is_empty() {
            struct_ser.serialize_field("groupBy", &self.group_by)?;
        }
        if self.query_type != 0 {
            let v = HeatmapQueryType::try_from(self.query_type)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.query_type)))?;
            struct_ser.serialize_field("queryType", &v)?;
        }
        if self.exemplar_type != 0 {
            let v = crate::wire::proto::types::ExemplarType::try_from(self.exemplar_type)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.exemplar_type)))?;
            struct_ser.serialize_field("exemplarType", &v)?;
        }
        if let Some(v) = self.limit.as_ref() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("limit", ToString::to_string(&v).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SelectHeatmapRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "profile_typeID",
            "profileTypeID",
            "label_selector",
            "labelSelector",
            "start",
            "end",
            "step",
            "group_by",
            "groupBy",
            "query_type",
            "queryType",
            "exemplar_type",
            "exemplarType",
            "limit",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ProfileTypeId,
            LabelSelector,
            Start,
            End,
            Step,
            GroupBy,
            QueryType,
            ExemplarType,
            Limit,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "profileTypeID" | "profile_typeID" => Ok(GeneratedField::ProfileTypeId),
                            "labelSelector" | "label_selector" => Ok(GeneratedField::LabelSelector),
                            "start" => Ok(GeneratedField::Start),
                            "end" => Ok(GeneratedField::End),
                            "step" => Ok(GeneratedField::Step),
                            "groupBy" | "group_by" => Ok(GeneratedField::GroupBy),
                            "queryType" | "query_type" => Ok(GeneratedField::QueryType),
                            "exemplarType" | "exemplar_type" => Ok(GeneratedField::ExemplarType),
                            "limit" => Ok(GeneratedField::Limit),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SelectHeatmapRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.SelectHeatmapRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SelectHeatmapRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut profile_type_id__ = None;
                let mut label_selector__ = None;
                let mut start__ = None;
                let mut end__ = None;
                let mut step__ = None;
                let mut group_by__ = None;
                let mut query_type__ = None;
                let mut exemplar_type__ = None;
                let mut limit__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ProfileTypeId => {
                            if profile_type_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("profileTypeID"));
                            }
                            profile_type_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::LabelSelector => {
                            if label_selector__.is_some() {
                                return Err(serde::de::Error::duplicate_field("labelSelector"));
                            }
                            label_selector__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Start => {
                            if start__.is_some() {
                                return Err(serde::de::Error::duplicate_field("start"));
                            }
                            start__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::End => {
                            if end__.is_some() {
                                return Err(serde::de::Error::duplicate_field("end"));
                            }
                            end__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Step => {
                            if step__.is_some() {
                                return Err(serde::de::Error::duplicate_field("step"));
                            }
                            step__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::GroupBy => {
                            if group_by__.is_some() {
                                return Err(serde::de::Error::duplicate_field("groupBy"));
                            }
                            group_by__ = Some(map_.next_value()?);
                        }
                        GeneratedField::QueryType => {
                            if query_type__.is_some() {
                                return Err(serde::de::Error::duplicate_field("queryType"));
                            }
                            query_type__ = Some(map_.next_value::<HeatmapQueryType>()? as i32);
                        }
                        GeneratedField::ExemplarType => {
                            if exemplar_type__.is_some() {
                                return Err(serde::de::Error::duplicate_field("exemplarType"));
                            }
                            exemplar_type__ = Some(map_.next_value::<crate::wire::proto::types::ExemplarType>()? as i32);
                        }
                        GeneratedField::Limit => {
                            if limit__.is_some() {
                                return Err(serde::de::Error::duplicate_field("limit"));
                            }
                            limit__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(SelectHeatmapRequest {
                    profile_type_id: profile_type_id__.unwrap_or_default(),
                    label_selector: label_selector__.unwrap_or_default(),
                    start: start__.unwrap_or_default(),
                    end: end__.unwrap_or_default(),
                    step: step__.unwrap_or_default(),
                    group_by: group_by__.unwrap_or_default(),
                    query_type: query_type__.unwrap_or_default(),
                    exemplar_type: exemplar_type__.unwrap_or_default(),
                    limit: limit__,
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.SelectHeatmapRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SelectHeatmapResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.series.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.SelectHeatmapResponse", len)?;
        if !self.series.is_empty() {
            struct_ser.serialize_field("series", &self.series)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SelectHeatmapResponse {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "series",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Series,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "series" => Ok(GeneratedField::Series),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SelectHeatmapResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.SelectHeatmapResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SelectHeatmapResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut series__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Series => {
                            if series__.is_some() {
                                return Err(serde::de::Error::duplicate_field("series"));
                            }
                            series__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(SelectHeatmapResponse {
                    series: series__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.SelectHeatmapResponse", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SelectMergeProfileRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.profile_type_id.is_empty() {
            len += 1;
        }
        if !self.label_selector.is_empty() {
            len += 1;
        }
        if self.start != 0 {
            len += 1;
        }
        if self.end != 0 {
            len += 1;
        }
        if self.max_nodes.is_some() {
            len += 1;
        }
        if self.stack_trace_selector.is_some() {
            len += 1;
        }
        if !self.profile_id_selector.is_empty() {
            len += 1;
        }
        if !self.trace_id_selector.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.SelectMergeProfileRequest", len)?;
        if !self.profile_type_id.is_empty() {
            struct_ser.serialize_field("profileTypeID", &self.profile_type_id)?;
        }
        if !self.label_selector.is_empty() {
            struct_ser.serialize_field("labelSelector", &self.label_selector)?;
        }
        if self.start != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("start", ToString::to_string(&self.start).as_str())?;
        }
        if self.end != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("end", ToString::to_string(&self.end).as_str())?;
        }
        if let Some(v) = self.max_nodes.as_ref() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("maxNodes", ToString::to_string(&v).as_str())?;
        }
        if let Some(v) = self.stack_trace_selector.as_ref() {
            struct_ser.serialize_field("stackTraceSelector", v)?;
        }
        if !self.profile_id_selector.is_empty() {
            struct_ser.serialize_field("profileIdSelector", &self.profile_id_selector)?;
        }
        if !self.trace_id_selector.is_empty() {
            struct_ser.serialize_field("traceIdSelector", &self.trace_id_selector)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SelectMergeProfileRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "profile_typeID",
            "profileTypeID",
            "label_selector",
            "labelSelector",
            "start",
            "end",
            "max_nodes",
            "maxNodes",
            "stack_trace_selector",
            "stackTraceSelector",
            "profile_id_selector",
            "profileIdSelector",
            "trace_id_selector",
            "traceIdSelector",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ProfileTypeId,
            LabelSelector,
            Start,
            End,
            MaxNodes,
            StackTraceSelector,
            ProfileIdSelector,
            TraceIdSelector,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "profileTypeID" | "profile_typeID" => Ok(GeneratedField::ProfileTypeId),
                            "labelSelector" | "label_selector" => Ok(GeneratedField::LabelSelector),
                            "start" => Ok(GeneratedField::Start),
                            "end" => Ok(GeneratedField::End),
                            "maxNodes" | "max_nodes" => Ok(GeneratedField::MaxNodes),
                            "stackTraceSelector" | "stack_trace_selector" => Ok(GeneratedField::StackTraceSelector),
                            "profileIdSelector" | "profile_id_selector" => Ok(GeneratedField::ProfileIdSelector),
                            "traceIdSelector" | "trace_id_selector" => Ok(GeneratedField::TraceIdSelector),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SelectMergeProfileRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.SelectMergeProfileRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SelectMergeProfileRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut profile_type_id__ = None;
                let mut label_selector__ = None;
                let mut start__ = None;
                let mut end__ = None;
                let mut max_nodes__ = None;
                let mut stack_trace_selector__ = None;
                let mut profile_id_selector__ = None;
                let mut trace_id_selector__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ProfileTypeId => {
                            if profile_type_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("profileTypeID"));
                            }
                            profile_type_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::LabelSelector => {
                            if label_selector__.is_some() {
                                return Err(serde::de::Error::duplicate_field("labelSelector"));
                            }
                            label_selector__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Start => {
                            if start__.is_some() {
                                return Err(serde::de::Error::duplicate_field("start"));
                            }
                            start__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::End => {
                            if end__.is_some() {
                                return Err(serde::de::Error::duplicate_field("end"));
                            }
                            end__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::MaxNodes => {
                            if max_nodes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxNodes"));
                            }
                            max_nodes__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::StackTraceSelector => {
                            if stack_trace_selector__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stackTraceSelector"));
                            }
                            stack_trace_selector__ = map_.next_value()?;
                        }
                        GeneratedField::ProfileIdSelector => {
                            if profile_id_selector__.is_some() {
                                return Err(serde::de::Error::duplicate_field("profileIdSelector"));
                            }
                            profile_id_selector__ = Some(map_.next_value()?);
                        }
                        GeneratedField::TraceIdSelector => {
                            if trace_id_selector__.is_some() {
                                return Err(serde::de::Error::duplicate_field("traceIdSelector"));
                            }
                            trace_id_selector__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(SelectMergeProfileRequest {
                    profile_type_id: profile_type_id__.unwrap_or_default(),
                    label_selector: label_selector__.unwrap_or_default(),
                    start: start__.unwrap_or_default(),
                    end: end__.unwrap_or_default(),
                    max_nodes: max_nodes__,
                    stack_trace_selector: stack_trace_selector__,
                    profile_id_selector: profile_id_selector__.unwrap_or_default(),
                    trace_id_selector: trace_id_selector__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.SelectMergeProfileRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SelectMergeSpanProfileRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.profile_type_id.is_empty() {
            len += 1;
        }
        if !self.label_selector.is_empty() {
            len += 1;
        }
        if !self.span_selector.is_empty() {
            len += 1;
        }
        if self.start != 0 {
            len += 1;
        }
        if self.end != 0 {
            len += 1;
        }
        if self.max_nodes.is_some() {
            len += 1;
        }
        if self.format != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.SelectMergeSpanProfileRequest", len)?;
        if !self.profile_type_id.is_empty() {
            struct_ser.serialize_field("profileTypeID", &self.profile_type_id)?;
        }
        if !self.label_selector.is_empty() {
            struct_ser.serialize_field("labelSelector", &self.label_selector)?;
        }
        if !self.span_selector.is_empty() {
            struct_ser.serialize_field("spanSelector", &self.span_selector)?;
        }
        if self.start != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("start", ToString::to_string(&self.start).as_str())?;
        }
        if self.end != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("end", ToString::to_string(&self.end).as_str())?;
        }
        if let Some(v) = self.max_nodes.as_ref() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("maxNodes", ToString::to_string(&v).as_str())?;
        }
        if self.format != 0 {
            let v = ProfileFormat::try_from(self.format)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.format)))?;
            struct_ser.serialize_field("format", &v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SelectMergeSpanProfileRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "profile_typeID",
            "profileTypeID",
            "label_selector",
            "labelSelector",
            "span_selector",
            "spanSelector",
            "start",
            "end",
            "max_nodes",
            "maxNodes",
            "format",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ProfileTypeId,
            LabelSelector,
            SpanSelector,
            Start,
            End,
            MaxNodes,
            Format,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "profileTypeID" | "profile_typeID" => Ok(GeneratedField::ProfileTypeId),
                            "labelSelector" | "label_selector" => Ok(GeneratedField::LabelSelector),
                            "spanSelector" | "span_selector" => Ok(GeneratedField::SpanSelector),
                            "start" => Ok(GeneratedField::Start),
                            "end" => Ok(GeneratedField::End),
                            "maxNodes" | "max_nodes" => Ok(GeneratedField::MaxNodes),
                            "format" => Ok(GeneratedField::Format),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SelectMergeSpanProfileRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.SelectMergeSpanProfileRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SelectMergeSpanProfileRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut profile_type_id__ = None;
                let mut label_selector__ = None;
                let mut span_selector__ = None;
                let mut start__ = None;
                let mut end__ = None;
                let mut max_nodes__ = None;
                let mut format__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ProfileTypeId => {
                            if profile_type_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("profileTypeID"));
                            }
                            profile_type_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::LabelSelector => {
                            if label_selector__.is_some() {
                                return Err(serde::de::Error::duplicate_field("labelSelector"));
                            }
                            label_selector__ = Some(map_.next_value()?);
                        }
                        GeneratedField::SpanSelector => {
                            if span_selector__.is_some() {
                                return Err(serde::de::Error::duplicate_field("spanSelector"));
                            }
                            span_selector__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Start => {
                            if start__.is_some() {
                                return Err(serde::de::Error::duplicate_field("start"));
                            }
                            start__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::End => {
                            if end__.is_some() {
                                return Err(serde::de::Error::duplicate_field("end"));
                            }
                            end__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::MaxNodes => {
                            if max_nodes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxNodes"));
                            }
                            max_nodes__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::Format => {
                            if format__.is_some() {
                                return Err(serde::de::Error::duplicate_field("format"));
                            }
                            format__ = Some(map_.next_value::<ProfileFormat>()? as i32);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(SelectMergeSpanProfileRequest {
                    profile_type_id: profile_type_id__.unwrap_or_default(),
                    label_selector: label_selector__.unwrap_or_default(),
                    span_selector: span_selector__.unwrap_or_default(),
                    start: start__.unwrap_or_default(),
                    end: end__.unwrap_or_default(),
                    max_nodes: max_nodes__,
                    format: format__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.SelectMergeSpanProfileRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SelectMergeSpanProfileResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.flamegraph.is_some() {
            len += 1;
        }
        if !self.tree.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.SelectMergeSpanProfileResponse", len)?;
        if let Some(v) = self.flamegraph.as_ref() {
            struct_ser.serialize_field("flamegraph", v)?;
        }
        if !self.tree.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("tree", pbjson::private::base64::encode(&self.tree).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SelectMergeSpanProfileResponse {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "flamegraph",
            "tree",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Flamegraph,
            Tree,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "flamegraph" => Ok(GeneratedField::Flamegraph),
                            "tree" => Ok(GeneratedField::Tree),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SelectMergeSpanProfileResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.SelectMergeSpanProfileResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SelectMergeSpanProfileResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut flamegraph__ = None;
                let mut tree__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Flamegraph => {
                            if flamegraph__.is_some() {
                                return Err(serde::de::Error::duplicate_field("flamegraph"));
                            }
                            flamegraph__ = map_.next_value()?;
                        }
                        GeneratedField::Tree => {
                            if tree__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tree"));
                            }
                            tree__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(SelectMergeSpanProfileResponse {
                    flamegraph: flamegraph__,
                    tree: tree__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.SelectMergeSpanProfileResponse", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SelectMergeStacktracesRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.profile_type_id.is_empty() {
            len += 1;
        }
        if !self.label_selector.is_empty() {
            len += 1;
        }
        if self.start != 0 {
            len += 1;
        }
        if self.end != 0 {
            len += 1;
        }
        if self.max_nodes.is_some() {
            len += 1;
        }
        if self.format != 0 {
            len += 1;
        }
        if self.stack_trace_selector.is_some() {
            len += 1;
        }
        if !self.profile_id_selector.is_empty() {
            len += 1;
        }
        if self.r#async.is_some() {
            len += 1;
        }
        if !self.trace_id_selector.is_empty() {
            len += 1;
        }
        if !self.span_selector.is_empty() {
            len += 1;
        }
        if self.frame_details {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.SelectMergeStacktracesRequest", len)?;
        if !self.profile_type_id.is_empty() {
            struct_ser.serialize_field("profileTypeID", &self.profile_type_id)?;
        }
        if !self.label_selector.is_empty() {
            struct_ser.serialize_field("labelSelector", &self.label_selector)?;
        }
        if self.start != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("start", ToString::to_string(&self.start).as_str())?;
        }
        if self.end != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("end", ToString::to_string(&self.end).as_str())?;
        }
        if let Some(v) = self.max_nodes.as_ref() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("maxNodes", ToString::to_string(&v).as_str())?;
        }
        if self.format != 0 {
            let v = ProfileFormat::try_from(self.format)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.format)))?;
            struct_ser.serialize_field("format", &v)?;
        }
        if let Some(v) = self.stack_trace_selector.as_ref() {
            struct_ser.serialize_field("stackTraceSelector", v)?;
        }
        if !self.profile_id_selector.is_empty() {
            struct_ser.serialize_field("profileIdSelector", &self.profile_id_selector)?;
        }
        if let Some(v) = self.r#async.as_ref() {
            struct_ser.serialize_field("async", v)?;
        }
        if !self.trace_id_selector.is_empty() {
            struct_ser.serialize_field("traceIdSelector", &self.trace_id_selector)?;
        }
        if !self.span_selector.is_empty() {
            struct_ser.serialize_field("spanSelector", &self.span_selector)?;
        }
        if self.frame_details {
            struct_ser.serialize_field("frameDetails", &self.frame_details)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SelectMergeStacktracesRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "profile_typeID",
            "profileTypeID",
            "label_selector",
            "labelSelector",
            "start",
            "end",
            "max_nodes",
            "maxNodes",
            "format",
            "stack_trace_selector",
            "stackTraceSelector",
            "profile_id_selector",
            "profileIdSelector",
            "async",
            "trace_id_selector",
            "traceIdSelector",
            "span_selector",
            "spanSelector",
            "frame_details",
            "frameDetails",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ProfileTypeId,
            LabelSelector,
            Start,
            End,
            MaxNodes,
            Format,
            StackTraceSelector,
            ProfileIdSelector,
            Async,
            TraceIdSelector,
            SpanSelector,
            FrameDetails,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "profileTypeID" | "profile_typeID" => Ok(GeneratedField::ProfileTypeId),
                            "labelSelector" | "label_selector" => Ok(GeneratedField::LabelSelector),
                            "start" => Ok(GeneratedField::Start),
                            "end" => Ok(GeneratedField::End),
                            "maxNodes" | "max_nodes" => Ok(GeneratedField::MaxNodes),
                            "format" => Ok(GeneratedField::Format),
                            "stackTraceSelector" | "stack_trace_selector" => Ok(GeneratedField::StackTraceSelector),
                            "profileIdSelector" | "profile_id_selector" => Ok(GeneratedField::ProfileIdSelector),
                            "async" => Ok(GeneratedField::Async),
                            "traceIdSelector" | "trace_id_selector" => Ok(GeneratedField::TraceIdSelector),
                            "spanSelector" | "span_selector" => Ok(GeneratedField::SpanSelector),
                            "frameDetails" | "frame_details" => Ok(GeneratedField::FrameDetails),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SelectMergeStacktracesRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.SelectMergeStacktracesRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SelectMergeStacktracesRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut profile_type_id__ = None;
                let mut label_selector__ = None;
                let mut start__ = None;
                let mut end__ = None;
                let mut max_nodes__ = None;
                let mut format__ = None;
                let mut stack_trace_selector__ = None;
                let mut profile_id_selector__ = None;
                let mut r#async__ = None;
                let mut trace_id_selector__ = None;
                let mut span_selector__ = None;
                let mut frame_details__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ProfileTypeId => {
                            if profile_type_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("profileTypeID"));
                            }
                            profile_type_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::LabelSelector => {
                            if label_selector__.is_some() {
                                return Err(serde::de::Error::duplicate_field("labelSelector"));
                            }
                            label_selector__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Start => {
                            if start__.is_some() {
                                return Err(serde::de::Error::duplicate_field("start"));
                            }
                            start__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::End => {
                            if end__.is_some() {
                                return Err(serde::de::Error::duplicate_field("end"));
                            }
                            end__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::MaxNodes => {
                            if max_nodes__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxNodes"));
                            }
                            max_nodes__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::Format => {
                            if format__.is_some() {
                                return Err(serde::de::Error::duplicate_field("format"));
                            }
                            format__ = Some(map_.next_value::<ProfileFormat>()? as i32);
                        }
                        GeneratedField::StackTraceSelector => {
                            if stack_trace_selector__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stackTraceSelector"));
                            }
                            stack_trace_selector__ = map_.next_value()?;
                        }
                        GeneratedField::ProfileIdSelector => {
                            if profile_id_selector__.is_some() {
                                return Err(serde::de::Error::duplicate_field("profileIdSelector"));
                            }
                            profile_id_selector__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Async => {
                            if r#async__.is_some() {
                                return Err(serde::de::Error::duplicate_field("async"));
                            }
                            r#async__ = map_.next_value()?;
                        }
                        GeneratedField::TraceIdSelector => {
                            if trace_id_selector__.is_some() {
                                return Err(serde::de::Error::duplicate_field("traceIdSelector"));
                            }
                            trace_id_selector__ = Some(map_.next_value()?);
                        }
                        GeneratedField::SpanSelector => {
                            if span_selector__.is_some() {
                                return Err(serde::de::Error::duplicate_field("spanSelector"));
                            }
                            span_selector__ = Some(map_.next_value()?);
                        }
                        GeneratedField::FrameDetails => {
                            if frame_details__.is_some() {
                                return Err(serde::de::Error::duplicate_field("frameDetails"));
                            }
                            frame_details__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(SelectMergeStacktracesRequest {
                    profile_type_id: profile_type_id__.unwrap_or_default(),
                    label_selector: label_selector__.unwrap_or_default(),
                    start: start__.unwrap_or_default(),
                    end: end__.unwrap_or_default(),
                    max_nodes: max_nodes__,
                    format: format__.unwrap_or_default(),
                    stack_trace_selector: stack_trace_selector__,
                    profile_id_selector: profile_id_selector__.unwrap_or_default(),
                    r#async: r#async__,
                    trace_id_selector: trace_id_selector__.unwrap_or_default(),
                    span_selector: span_selector__.unwrap_or_default(),
                    frame_details: frame_details__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.SelectMergeStacktracesRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SelectMergeStacktracesResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.flamegraph.is_some() {
            len += 1;
        }
        if !self.tree.is_empty() {
            len += 1;
        }
        if !self.dot.is_empty() {
            len += 1;
        }
        if self.r#async.is_some() {
            len += 1;
        }
        if self.pprof.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.SelectMergeStacktracesResponse", len)?;
        if let Some(v) = self.flamegraph.as_ref() {
            struct_ser.serialize_field("flamegraph", v)?;
        }
        if !self.tree.is_empty() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("tree", pbjson::private::base64::encode(&self.tree).as_str())?;
        }
        if !self.dot.is_empty() {
            struct_ser.serialize_field("dot", &self.dot)?;
        }
        if let Some(v) = self.r#async.as_ref() {
            struct_ser.serialize_field("async", v)?;
        }
        if let Some(v) = self.pprof.as_ref() {
            struct_ser.serialize_field("pprof", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SelectMergeStacktracesResponse {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "flamegraph",
            "tree",
            "dot",
            "async",
            "pprof",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Flamegraph,
            Tree,
            Dot,
            Async,
            Pprof,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "flamegraph" => Ok(GeneratedField::Flamegraph),
                            "tree" => Ok(GeneratedField::Tree),
                            "dot" => Ok(GeneratedField::Dot),
                            "async" => Ok(GeneratedField::Async),
                            "pprof" => Ok(GeneratedField::Pprof),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SelectMergeStacktracesResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.SelectMergeStacktracesResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SelectMergeStacktracesResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut flamegraph__ = None;
                let mut tree__ = None;
                let mut dot__ = None;
                let mut r#async__ = None;
                let mut pprof__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Flamegraph => {
                            if flamegraph__.is_some() {
                                return Err(serde::de::Error::duplicate_field("flamegraph"));
                            }
                            flamegraph__ = map_.next_value()?;
                        }
                        GeneratedField::Tree => {
                            if tree__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tree"));
                            }
                            tree__ = 
                                Some(map_.next_value::<::pbjson::private::BytesDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Dot => {
                            if dot__.is_some() {
                                return Err(serde::de::Error::duplicate_field("dot"));
                            }
                            dot__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Async => {
                            if r#async__.is_some() {
                                return Err(serde::de::Error::duplicate_field("async"));
                            }
                            r#async__ = map_.next_value()?;
                        }
                        GeneratedField::Pprof => {
                            if pprof__.is_some() {
                                return Err(serde::de::Error::duplicate_field("pprof"));
                            }
                            pprof__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(SelectMergeStacktracesResponse {
                    flamegraph: flamegraph__,
                    tree: tree__.unwrap_or_default(),
                    dot: dot__.unwrap_or_default(),
                    r#async: r#async__,
                    pprof: pprof__,
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.SelectMergeStacktracesResponse", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SelectSeriesRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.profile_type_id.is_empty() {
            len += 1;
        }
        if !self.label_selector.is_empty() {
            len += 1;
        }
        if self.start != 0 {
            len += 1;
        }
        if self.end != 0 {
            len += 1;
        }
        if !self.group_by.is_empty() {
            len += 1;
        }
        if self.step != 0. {
            len += 1;
        }
        if self.aggregation.is_some() {
            len += 1;
        }
        if self.stack_trace_selector.is_some() {
            len += 1;
        }
        if self.limit.is_some() {
            len += 1;
        }
        if self.exemplar_type != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.SelectSeriesRequest", len)?;
        if !self.profile_type_id.is_empty() {
            struct_ser.serialize_field("profileTypeID", &self.profile_type_id)?;
        }
        if !self.label_selector.is_empty() {
            struct_ser.serialize_field("labelSelector", &self.label_selector)?;
        }
        if self.start != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("start", ToString::to_string(&self.start).as_str())?;
        }
        if self.end != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("end", ToString::to_string(&self.end).as_str())?;
        }
        if !self.group_by.is_empty() {
            struct_ser.serialize_field("groupBy", &self.group_by)?;
        }
        if self.step != 0. {
            struct_ser.serialize_field("step", &self.step)?;
        }
        if let Some(v) = self.aggregation.as_ref() {
            let v = crate::wire::proto::types::TimeSeriesAggregationType::try_from(*v)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", *v)))?;
            struct_ser.serialize_field("aggregation", &v)?;
        }
        if let Some(v) = self.stack_trace_selector.as_ref() {
            struct_ser.serialize_field("stackTraceSelector", v)?;
        }
        if let Some(v) = self.limit.as_ref() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("limit", ToString::to_string(&v).as_str())?;
        }
        if self.exemplar_type != 0 {
            let v = crate::wire::proto::types::ExemplarType::try_from(self.exemplar_type)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.exemplar_type)))?;
            struct_ser.serialize_field("exemplarType", &v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SelectSeriesRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "profile_typeID",
            "profileTypeID",
            "label_selector",
            "labelSelector",
            "start",
            "end",
            "group_by",
            "groupBy",
            "step",
            "aggregation",
            "stack_trace_selector",
            "stackTraceSelector",
            "limit",
            "exemplar_type",
            "exemplarType",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            ProfileTypeId,
            LabelSelector,
            Start,
            End,
            GroupBy,
            Step,
            Aggregation,
            StackTraceSelector,
            Limit,
            ExemplarType,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "profileTypeID" | "profile_typeID" => Ok(GeneratedField::ProfileTypeId),
                            "labelSelector" | "label_selector" => Ok(GeneratedField::LabelSelector),
                            "start" => Ok(GeneratedField::Start),
                            "end" => Ok(GeneratedField::End),
                            "groupBy" | "group_by" => Ok(GeneratedField::GroupBy),
                            "step" => Ok(GeneratedField::Step),
                            "aggregation" => Ok(GeneratedField::Aggregation),
                            "stackTraceSelector" | "stack_trace_selector" => Ok(GeneratedField::StackTraceSelector),
                            "limit" => Ok(GeneratedField::Limit),
                            "exemplarType" | "exemplar_type" => Ok(GeneratedField::ExemplarType),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SelectSeriesRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.SelectSeriesRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SelectSeriesRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut profile_type_id__ = None;
                let mut label_selector__ = None;
                let mut start__ = None;
                let mut end__ = None;
                let mut group_by__ = None;
                let mut step__ = None;
                let mut aggregation__ = None;
                let mut stack_trace_selector__ = None;
                let mut limit__ = None;
                let mut exemplar_type__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::ProfileTypeId => {
                            if profile_type_id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("profileTypeID"));
                            }
                            profile_type_id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::LabelSelector => {
                            if label_selector__.is_some() {
                                return Err(serde::de::Error::duplicate_field("labelSelector"));
                            }
                            label_selector__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Start => {
                            if start__.is_some() {
                                return Err(serde::de::Error::duplicate_field("start"));
                            }
                            start__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::End => {
                            if end__.is_some() {
                                return Err(serde::de::Error::duplicate_field("end"));
                            }
                            end__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::GroupBy => {
                            if group_by__.is_some() {
                                return Err(serde::de::Error::duplicate_field("groupBy"));
                            }
                            group_by__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Step => {
                            if step__.is_some() {
                                return Err(serde::de::Error::duplicate_field("step"));
                            }
                            step__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Aggregation => {
                            if aggregation__.is_some() {
                                return Err(serde::de::Error::duplicate_field("aggregation"));
                            }
                            aggregation__ = map_.next_value::<::std::option::Option<crate::wire::proto::types::TimeSeriesAggregationType>>()?.map(|x| x as i32);
                        }
                        GeneratedField::StackTraceSelector => {
                            if stack_trace_selector__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stackTraceSelector"));
                            }
                            stack_trace_selector__ = map_.next_value()?;
                        }
                        GeneratedField::Limit => {
                            if limit__.is_some() {
                                return Err(serde::de::Error::duplicate_field("limit"));
                            }
                            limit__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::ExemplarType => {
                            if exemplar_type__.is_some() {
                                return Err(serde::de::Error::duplicate_field("exemplarType"));
                            }
                            exemplar_type__ = Some(map_.next_value::<crate::wire::proto::types::ExemplarType>()? as i32);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(SelectSeriesRequest {
                    profile_type_id: profile_type_id__.unwrap_or_default(),
                    label_selector: label_selector__.unwrap_or_default(),
                    start: start__.unwrap_or_default(),
                    end: end__.unwrap_or_default(),
                    group_by: group_by__.unwrap_or_default(),
                    step: step__.unwrap_or_default(),
                    aggregation: aggregation__,
                    stack_trace_selector: stack_trace_selector__,
                    limit: limit__,
                    exemplar_type: exemplar_type__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.SelectSeriesRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SelectSeriesResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.series.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.SelectSeriesResponse", len)?;
        if !self.series.is_empty() {
            struct_ser.serialize_field("series", &self.series)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SelectSeriesResponse {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "series",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Series,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "series" => Ok(GeneratedField::Series),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SelectSeriesResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.SelectSeriesResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SelectSeriesResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut series__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Series => {
                            if series__.is_some() {
                                return Err(serde::de::Error::duplicate_field("series"));
                            }
                            series__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(SelectSeriesResponse {
                    series: series__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.SelectSeriesResponse", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SeriesRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.matchers.is_empty() {
            len += 1;
        }
        if !self.label_names.is_empty() {
            len += 1;
        }
        if self.start != 0 {
            len += 1;
        }
        if self.end != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.SeriesRequest", len)?;
        if !self.matchers.is_empty() {
            struct_ser.serialize_field("matchers", &self.matchers)?;
        }
        if !self.label_names.is_empty() {
            struct_ser.serialize_field("labelNames", &self.label_names)?;
        }
        if self.start != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("start", ToString::to_string(&self.start).as_str())?;
        }
        if self.end != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("end", ToString::to_string(&self.end).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SeriesRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "matchers",
            "label_names",
            "labelNames",
            "start",
            "end",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Matchers,
            LabelNames,
            Start,
            End,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "matchers" => Ok(GeneratedField::Matchers),
                            "labelNames" | "label_names" => Ok(GeneratedField::LabelNames),
                            "start" => Ok(GeneratedField::Start),
                            "end" => Ok(GeneratedField::End),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SeriesRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.SeriesRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SeriesRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut matchers__ = None;
                let mut label_names__ = None;
                let mut start__ = None;
                let mut end__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Matchers => {
                            if matchers__.is_some() {
                                return Err(serde::de::Error::duplicate_field("matchers"));
                            }
                            matchers__ = Some(map_.next_value()?);
                        }
                        GeneratedField::LabelNames => {
                            if label_names__.is_some() {
                                return Err(serde::de::Error::duplicate_field("labelNames"));
                            }
                            label_names__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Start => {
                            if start__.is_some() {
                                return Err(serde::de::Error::duplicate_field("start"));
                            }
                            start__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::End => {
                            if end__.is_some() {
                                return Err(serde::de::Error::duplicate_field("end"));
                            }
                            end__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(SeriesRequest {
                    matchers: matchers__.unwrap_or_default(),
                    label_names: label_names__.unwrap_or_default(),
                    start: start__.unwrap_or_default(),
                    end: end__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.SeriesRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for SeriesResponse {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.labels_set.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("querier.v1.SeriesResponse", len)?;
        if !self.labels_set.is_empty() {
            struct_ser.serialize_field("labelsSet", &self.labels_set)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for SeriesResponse {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "labels_set",
            "labelsSet",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            LabelsSet,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "labelsSet" | "labels_set" => Ok(GeneratedField::LabelsSet),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = SeriesResponse;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct querier.v1.SeriesResponse")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<SeriesResponse, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut labels_set__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::LabelsSet => {
                            if labels_set__.is_some() {
                                return Err(serde::de::Error::duplicate_field("labelsSet"));
                            }
                            labels_set__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(SeriesResponse {
                    labels_set: labels_set__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("querier.v1.SeriesResponse", FIELDS, GeneratedVisitor)
    }
}
