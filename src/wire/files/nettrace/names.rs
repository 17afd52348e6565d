//! Names of the code at an address: methods with their modules, as the events of the runtime say them.

use hashbrown::HashMap;

use crate::wire::files::nettrace::cursor::{Cursor, Problem, Text};

/// Methods and modules of a trace. Each takes about twice the memory that it has in the file.
#[derive(Default)]
pub(super) struct Names<'a> {
    /// After [`Names::sort`] in order of their addresses.
    methods: Vec<Method<'a>>,
    /// File of the code of each module.
    modules: HashMap<u64, Text<'a>>,
}

struct Method<'a> {
    start: u64,
    size: u32,
    module: u64,
    namespace: Text<'a>,
    name: Text<'a>,
    signature: Text<'a>,
}

impl<'a> Names<'a> {
    /// Reads an event that says where a method is.
    pub(super) fn add_method(&mut self, mut payload: Cursor<'a>) -> Result<(), Problem> {
        let _id = payload.u64()?;
        let module = payload.u64()?;
        let start = payload.u64()?;
        let size = payload.u32()?;
        // Token and flags.
        payload.u64()?;
        self.methods.push(Method {
            start,
            size,
            module,
            namespace: payload.text()?,
            name: payload.text()?,
            signature: payload.text()?,
        });
        Ok(())
    }

    /// Reads an event that names the file of a module.
    pub(super) fn add_module(&mut self, mut payload: Cursor<'a>) -> Result<(), Problem> {
        let id = payload.u64()?;
        let _assembly = payload.u64()?;
        // Flags and what is reserved.
        payload.u64()?;
        self.modules.insert(id, payload.text()?);
        Ok(())
    }

    /// Number of methods; the same code may be there twice.
    pub(super) fn len(&self) -> usize {
        self.methods.len()
    }

    /// To be called before [`Names::find`]. Of several methods at an address the last that was said stays last.
    pub(super) fn sort(&mut self) {
        self.methods.sort_by_key(|method| method.start);
    }

    /// Index of the method with the code at an address.
    pub(super) fn find(&self, address: u64) -> Option<usize> {
        let behind = self.methods.partition_point(|method| method.start <= address);
        let index = behind.checked_sub(1)?;
        let method = self.methods.get(index)?;
        (address - method.start < u64::from(method.size)).then_some(index)
    }

    /// Bytes of the texts of which [`Names::name`] makes the name of a method.
    pub(super) fn length(&self, index: usize) -> usize {
        self.methods.get(index).map_or(0, |method| {
            let module = self.modules.get(&method.module).copied().unwrap_or_default();
            let texts = [module, method.namespace, method.name, method.signature];
            texts.map(Text::len).iter().sum()
        })
    }

    /// Name of a method, `module!namespace.name(arguments)`, and the file of its module, which may be empty: as
    /// `dotnet-trace` prints it.
    pub(super) fn name(&self, index: usize) -> (String, String) {
        let (mut name, mut file) = (String::new(), String::new());
        let Some(method) = self.methods.get(index) else {
            return (name, file);
        };
        if let Some(module) = self.modules.get(&method.module) {
            module.push_to(&mut file);
        }
        let module = file.rsplit(['/', '\\']).next().unwrap_or_default();
        let without_end = module.strip_suffix(".dll").or_else(|| module.strip_suffix(".exe"));
        let module = without_end.unwrap_or(module);
        if !module.is_empty() {
            name.push_str(module);
            name.push('!');
        }
        let before = name.len();
        method.namespace.push_to(&mut name);
        if name.len() > before {
            name.push('.');
        }
        method.name.push_to(&mut name);
        let mut signature = String::new();
        method.signature.push_to(&mut signature);
        name.push_str(
            signature
                .find('(')
                .and_then(|at| signature.get(at..))
                .unwrap_or_default(),
        );
        (name, file)
    }
}
