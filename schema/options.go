package schema

// Options are a load's inputs beside the folder itself. The same folder and options
// give the same Config.
type Options struct {
	// Root is the folder's absolute path: what path.root means.
	Root string
	// Vars are the --var flags in the order given; a later one wins.
	Vars []Assignment
	// VarFiles are the --var-file files, already read, in the order given. Name is
	// how diagnostics call the file.
	VarFiles []VarFile
	// Environ is the environment, "NAME=value"; only SPACES_VAR_x is read.
	Environ []string
}

// Assignment sets a variable from outside the files.
type Assignment struct {
	Name  string
	Value string
}

// VarFile is a variables file from outside the folder.
type VarFile struct {
	Name  string // as given
	Path  string // absolute
	Bytes []byte
}
