//! Names of the code at an address: methods with their modules, from events of the runtime.

use hashbrown::HashMap;

use crate::files::nettrace::cursor::{Cursor, Problem, Text};

/// Methods and modules of a trace. Each takes about twice as many bytes in memory as in the file.
#[derive(Default)]
pub(super) struct Names<'a> {
    /// Methods, sorted by address after [`Names::sort`].
    methods: Vec<Method<'a>>,
    /// File with the code of each module.
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
    /// Reads an event with the address of a method.
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

    /// Reads an event with the file of a module.
    pub(super) fn add_module(&mut self, mut payload: Cursor<'a>) -> Result<(), Problem> {
        let id = payload.u64()?;
        let _assembly = payload.u64()?;
        // Flags and a reserved field.
        payload.u64()?;
        self.modules.insert(id, payload.text()?);
        Ok(())
    }

    /// Returns the number of methods. The same code may be counted twice.
    pub(super) fn len(&self) -> usize {
        self.methods.len()
    }

    /// Sorts the methods; required before [`Names::find`]. Among methods at one address, the last one added stays last.
    pub(super) fn sort(&mut self) {
        self.methods.sort_by_key(|method| method.start);
    }

    /// Returns the index of the method whose code contains an address.
    pub(super) fn find(&self, address: u64) -> Option<usize> {
        let next_index = self.methods.partition_point(|method| method.start <= address);
        let index = next_index.checked_sub(1)?;
        let method = self.methods.get(index)?;
        (address - method.start < u64::from(method.size)).then_some(index)
    }

    /// Returns the total length in bytes of the texts from which [`Names::name`] builds the name of a method.
    pub(super) fn length(&self, index: usize) -> usize {
        self.methods.get(index).map_or(0, |method| {
            let module = self.modules.get(&method.module).copied().unwrap_or_default();
            let texts = [module, method.namespace, method.name, method.signature];
            texts.map(Text::len).iter().sum()
        })
    }

    /// Returns the name of a method, `module!namespace.name(arguments)`, and the file of its module, which may be
    /// empty. `dotnet-trace` prints the same name.
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
                .and_then(|offset| signature.get(offset..))
                .unwrap_or_default(),
        );
        (name, file)
    }
}
