//! ELF files for tests, made of the sections and segments that a test needs.

/// A section of a test file.
#[derive(Clone, Default)]
pub struct Section {
    pub name: &'static str,
    /// `sh_type` of the section's header.
    pub kind: u32,
    /// `sh_flags` of the section's header.
    pub flags: u64,
    /// Index of the section that this section refers to. The first section has the index 1.
    pub link: u32,
    /// Virtual address of the section's first byte.
    pub address: u64,
    pub bytes: Vec<u8>,
    /// Offset and size that the header of the section states, if they differ from the actual ones.
    pub offset: Option<(u64, u64)>,
}

/// Creates a 64-bit file for x86-64 with these sections, followed by a section with the names of all sections.
pub fn made(sections: &[Section]) -> Vec<u8> {
    with_segments(0, sections)
}

/// Creates a file like [`made`], with this many executable segments of one page (4 KiB) each.
pub fn with_segments(segments: u16, sections: &[Section]) -> Vec<u8> {
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut append = |bytes: &[u8]| file.extend_from_slice(bytes);
    append(&3_u16.to_le_bytes());
    append(&62_u16.to_le_bytes());
    append(&1_u32.to_le_bytes());
    let program_headers = if segments > 0 { 64_u64 } else { 0 };
    for number in [0, program_headers, 0] {
        append(&number.to_le_bytes());
    }
    append(&0_u32.to_le_bytes());
    let count = sections.len() as u16 + 2;
    for number in [64, 56, segments, 64, count, count - 1] {
        append(&number.to_le_bytes());
    }
    for index in 0..u64::from(segments) {
        // PT_LOAD, PF_R | PF_X
        append(&1_u32.to_le_bytes());
        append(&5_u32.to_le_bytes());
        let segment_offset = index * 0x1000;
        for number in [segment_offset, segment_offset, segment_offset, 0x1000, 0x1000, 0x1000] {
            append(&number.to_le_bytes());
        }
    }
    let mut names = vec![0];
    let mut headers = vec![0; 64];
    for section in sections {
        let offset = file.len() as u64;
        file.extend_from_slice(&section.bytes);
        file.resize(file.len().next_multiple_of(8), 0);
        let stated = section.offset.unwrap_or((offset, section.bytes.len() as u64));
        headers.extend(header(section, names.len() as u32, stated));
        names.extend_from_slice(section.name.as_bytes());
        names.push(0);
    }
    let strings = Section {
        kind: object::elf::SHT_STRTAB,
        ..Section::default()
    };
    headers.extend(header(&strings, 0, (file.len() as u64, names.len() as u64)));
    file.extend_from_slice(&names);
    file.resize(file.len().next_multiple_of(8), 0);
    let table_offset = file.len() as u64;
    file[40..48].copy_from_slice(&table_offset.to_le_bytes());
    file.extend_from_slice(&headers);
    file
}

fn header(section: &Section, name: u32, (offset, size): (u64, u64)) -> Vec<u8> {
    let mut header = Vec::with_capacity(64);
    header.extend_from_slice(&name.to_le_bytes());
    header.extend_from_slice(&section.kind.to_le_bytes());
    for number in [section.flags, section.address, offset, size] {
        header.extend_from_slice(&number.to_le_bytes());
    }
    header.extend_from_slice(&section.link.to_le_bytes());
    header.extend_from_slice(&0_u32.to_le_bytes());
    for number in [4_u64, 0] {
        header.extend_from_slice(&number.to_le_bytes());
    }
    header
}
