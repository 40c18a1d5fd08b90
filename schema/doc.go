// Package schema reads the language of spaces: every *.hcl file of a folder, its
// variables, and what they say together.
//
// The entry point is [Load]. It promises that a Config without errors is complete
// and legal in every way that can be judged from the files alone: each reference
// resolves, each name, size and address is well formed, no two things claim the
// same name, port or address. The same files and options give the same Config, in
// whatever order files and blocks stand. All that is wrong with a folder is
// reported at once, each with its place in the files.
//
// Its limits: it never looks at the host or an engine, so whether a source exists,
// who owns it and where its symlinks lead is judged elsewhere; and of HCL nothing
// but diagnostics leaves the package.
//
// A load has five passes. Files are read and parsed (load.go, nesting.go), blocks
// are collected and their shape is checked against the tables in spec.go, names
// that expressions mention are resolved (refs.go), locals and for_each are computed
// in the order of their references (eval.go), each instance is decoded
// (decode_*.go), and the objects are judged together (validate_*.go). A value that
// could not be computed is unknown from then on: whoever meets it keeps silent,
// because its cause has been reported. All wording is in diag.go.
package schema
