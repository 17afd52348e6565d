"""Encodes messages from dictionaries as protobuf or as protobuf's JSON. It supports only the field types that the pushes of this driver need.

The keys of a message are the field names of protobuf's JSON. `SCHEMAS` defines the number and the kind of each field. A list is a repeated field. If its values are
numbers, the field is packed.
"""

import base64

SCHEMAS = {
    "Label": {"key": (1, "int"), "str": (2, "int"), "num": (3, "int"), "numUnit": (4, "int")},
    "ValueType": {"type": (1, "int"), "unit": (2, "int")},
    "Sample": {"locationId": (1, "int"), "value": (2, "int"), "label": (3, "Label")},
    "Mapping": {"id": (1, "int"), "memoryStart": (2, "int"), "memoryLimit": (3, "int"), "fileOffset": (4, "int"), "filename": (5, "int"),
                "buildId": (6, "int"), "hasFunctions": (7, "int"), "hasFilenames": (8, "int"), "hasLineNumbers": (9, "int"), "hasInlineFrames": (10, "int")},
    "Line": {"functionId": (1, "int"), "line": (2, "int")},
    "Location": {"id": (1, "int"), "mappingId": (2, "int"), "address": (3, "int"), "line": (4, "Line")},
    "Function": {"id": (1, "int"), "name": (2, "int"), "systemName": (3, "int"), "filename": (4, "int"), "startLine": (5, "int")},
    "Profile": {"sampleType": (1, "ValueType"), "sample": (2, "Sample"), "mapping": (3, "Mapping"), "location": (4, "Location"),
                "function": (5, "Function"), "stringTable": (6, "str"), "timeNanos": (9, "int"), "durationNanos": (10, "int"),
                "periodType": (11, "ValueType"), "period": (12, "int"), "comment": (13, "int"), "defaultSampleType": (14, "int")},
    "LabelPair": {"name": (1, "str"), "value": (2, "str")},
    "RawSample": {"rawProfile": (1, "bytes"), "ID": (2, "str")},
    "RawProfileSeries": {"labels": (1, "LabelPair"), "samples": (2, "RawSample")},
    "PushRequest": {"series": (1, "RawProfileSeries")},
    "Strings": {"key": (1, "int"), "value": (2, "str")},
    "Pairs": {"key": (1, "int"), "value": (2, "int")},
    "Context": {"labels": (1, "Pairs")},
    "Contexts": {"key": (1, "int"), "value": (2, "Context")},
    "LabelsSnapshot": {"contexts": (1, "Contexts"), "strings": (2, "Strings")},
    # OpenTelemetry's messages, as of its release 1.10.
    "ArrayValue": {"values": (1, "AnyValue")},
    "AnyValue": {"stringValue": (1, "str"), "intValue": (3, "int64"), "arrayValue": (5, "ArrayValue")},
    "KeyValue": {"key": (1, "str"), "value": (2, "AnyValue")},
    "Resource": {"attributes": (1, "KeyValue")},
    "Scope": {"name": (1, "str"), "version": (2, "str"), "attributes": (3, "KeyValue")},
    "OValueType": {"typeStrindex": (1, "int"), "unitStrindex": (2, "int")},
    "OSample": {"stackIndex": (1, "int"), "attributeIndices": (2, "int"), "linkIndex": (3, "int"), "values": (4, "int64"),
                "timestampsUnixNano": (5, "fixed64")},
    "OProfile": {"sampleType": (1, "OValueType"), "samples": (2, "OSample"), "timeUnixNano": (3, "fixed64"), "durationNano": (4, "int64"),
                 "periodType": (5, "OValueType"), "period": (6, "int64"), "profileId": (7, "id")},
    "ScopeProfiles": {"scope": (1, "Scope"), "profiles": (2, "OProfile")},
    "ResourceProfiles": {"resource": (1, "Resource"), "scopeProfiles": (2, "ScopeProfiles")},
    "OMapping": {"memoryStart": (1, "int64"), "memoryLimit": (2, "int64"), "fileOffset": (3, "int64"), "filenameStrindex": (4, "int"),
                 "attributeIndices": (5, "int")},
    "OLine": {"functionIndex": (1, "int"), "line": (2, "int64")},
    "OLocation": {"mappingIndex": (1, "int"), "address": (2, "int64"), "lines": (3, "OLine")},
    "OFunction": {"nameStrindex": (1, "int"), "systemNameStrindex": (2, "int"), "filenameStrindex": (3, "int"), "startLine": (4, "int64")},
    "Link": {"traceId": (1, "id"), "spanId": (2, "id")},
    "Attribute": {"keyStrindex": (1, "int"), "value": (2, "AnyValue"), "unitStrindex": (3, "int")},
    "Stack": {"locationIndices": (1, "int")},
    "Dictionary": {"mappingTable": (1, "OMapping"), "locationTable": (2, "OLocation"), "functionTable": (3, "OFunction"), "linkTable": (4, "Link"),
                   "stringTable": (5, "str"), "attributeTable": (6, "Attribute"), "stackTable": (7, "Stack")},
    "Export": {"resourceProfiles": (1, "ResourceProfiles"), "dictionary": (2, "Dictionary")},
}


def varint(number):
    """Encodes a number in base 128. A negative number is encoded with 64 bits."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def delimited(number, data):
    """Encodes a length-delimited field."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def field(number, kind, value):
    """Encodes one field, or one entry of a repeated field."""
    if kind in ("int", "int64"):
        return varint(number << 3) + varint(value)
    if kind == "fixed64":
        return varint(number << 3 | 1) + value.to_bytes(8, "little")
    if kind == "str":
        return delimited(number, value.encode())
    if kind in ("bytes", "id"):
        return delimited(number, value)
    return delimited(number, encode(kind, value))


def encode(name, message):
    """Encodes a message of the schema `name` as protobuf."""
    out = b""
    for key, value in message.items():
        number, kind = SCHEMAS[name][key]
        if not isinstance(value, list):
            out += field(number, kind, value)
        elif kind in ("int", "int64"):
            out += delimited(number, b"".join(map(varint, value)))
        elif kind == "fixed64":
            out += delimited(number, b"".join(one.to_bytes(8, "little") for one in value))
        else:
            out += b"".join(field(number, kind, one) for one in value)
    return out


def to_json(name, message):
    """Encodes a message of the schema `name` as protobuf's JSON. Ids are hexadecimal, as in OpenTelemetry."""
    def one(kind, value):
        if kind in ("int64", "fixed64"):
            return str(value)
        if kind == "bytes":
            return base64.b64encode(value).decode()
        if kind == "id":
            return value.hex()
        return to_json(kind, value) if kind in SCHEMAS else value

    def every(kind, value):
        return [one(kind, entry) for entry in value] if isinstance(value, list) else one(kind, value)

    return {key: every(SCHEMAS[name][key][1], value) for key, value in message.items()}
