package schema

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// pieces cuts a file's top level into its blocks and attributes, comments aside.
func pieces(t testing.TB, src []byte) [][]byte {
	file, diags := hclsyntax.ParseConfig(src, "x.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	body := file.Body.(*hclsyntax.Body)
	var all [][]byte
	for _, attr := range sortedAttributes(body) {
		all = append(all, attr.SrcRange.SliceBytes(src))
	}
	for _, block := range body.Blocks {
		all = append(all, block.Range().SliceBytes(src))
	}
	return all
}

// scatter spreads the top level of a folder over files, in any order.
func scatter(t testing.TB, fsys fstest.MapFS, rng *rand.Rand) fstest.MapFS {
	out := fstest.MapFS{}
	var all [][]byte
	for _, name := range sortedNames(fsys) {
		if isConfig(name) {
			all = append(all, pieces(t, fsys[name].Data)...)
		} else {
			out[name] = fsys[name]
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	files := map[string][]byte{}
	for _, piece := range all {
		name := fmt.Sprintf("%d.hcl", rng.IntN(4))
		files[name] = append(append(files[name], piece...), '\n')
	}
	for name, data := range files {
		out[name] = &fstest.MapFile{Data: data}
	}
	return out
}

func isConfig(name string) bool {
	ok, _ := fstest.MapFS{name: {}}.Glob("*.hcl")
	return len(ok) == 1 && name[0] != '.'
}

func sortedNames(fsys fstest.MapFS) []string {
	names := make([]string, 0, len(fsys))
	for name := range fsys {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// The same blocks give the same Config, in whatever files and order they stand.
func TestOrderDoesNotMatter(t *testing.T) {
	for _, f := range fixtures(t, "valid") {
		t.Run(f.name(), func(t *testing.T) {
			fsys, opts := f.folder()
			c, _ := Load(fsys, opts)
			want := dump(c, false)
			for seed := range uint64(20) {
				scattered := scatter(t, fsys, rand.New(rand.NewPCG(seed, 1)))
				got, diags := Load(scattered, opts)
				if diags.HasErrors() {
					t.Fatalf("seed %d: %s", seed, render(t, got, diags))
				}
				if dump(got, false) != want {
					t.Fatalf("seed %d gives another Config:\n%s", seed, dump(got, false))
				}
			}
		})
	}
}

// Nested blocks may stand in any order too.
func TestNestedOrderDoesNotMatter(t *testing.T) {
	for _, f := range fixtures(t, "valid") {
		t.Run(f.name(), func(t *testing.T) {
			fsys, opts := f.folder()
			c, _ := Load(fsys, opts)
			for name, file := range fsys {
				if isConfig(name) {
					fsys[name] = &fstest.MapFile{Data: reversed(t, file.Data)}
				}
			}
			got, diags := Load(fsys, opts)
			if diags.HasErrors() {
				t.Fatal(render(t, got, diags))
			}
			if dump(got, false) != dump(c, false) {
				t.Fatalf("another Config:\n%s", dump(got, false))
			}
		})
	}
}

// reversed is a file with the blocks of each of its blocks turned round.
func reversed(t testing.TB, src []byte) []byte {
	file, diags := hclsyntax.ParseConfig(src, "x.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	var out bytes.Buffer
	reverseBody(&out, file.Body.(*hclsyntax.Body), src)
	return out.Bytes()
}

func reverseBody(out *bytes.Buffer, body *hclsyntax.Body, src []byte) {
	for _, attr := range sortedAttributes(body) {
		out.Write(append(attr.SrcRange.SliceBytes(src), '\n'))
	}
	for _, block := range slices.Backward(body.Blocks) {
		out.Write(block.DefRange().SliceBytes(src))
		out.WriteString(" {\n")
		reverseBody(out, block.Body, src)
		out.WriteString("}\n")
	}
}

// Diagnostics come in the same order and words each time.
func TestDiagnosticsAreStable(t *testing.T) {
	for _, f := range fixtures(t, "invalid") {
		fsys, opts := f.folder()
		c, diags := Load(fsys, opts)
		want := render(t, c, diags)
		for range 5 {
			if c, diags := Load(fsys, opts); render(t, c, diags) != want {
				t.Fatalf("%s: diagnostics differ from load to load", f.path)
			}
		}
	}
}

// A large folder loads in time that grows with its size.
func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{300, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			fsys := large(n)
			b.ReportAllocs()
			for b.Loop() {
				if _, diags := Load(fsys, Options{Root: fixtureRoot}); diags.HasErrors() {
					b.Fatal(diags)
				}
			}
		})
	}
}

func large(n int) fstest.MapFS {
	var src bytes.Buffer
	src.WriteString("project = \"large\"\nimage \"i\" { binary = \"spaces\" }\nnetwork \"u\" { uplink = true }\n")
	for i := range n {
		if i%10 == 0 {
			fmt.Fprintf(&src, "network \"n%d\" {}\negress \"e%d\" {\n network = network.n%d\n allow \"h%d.example.com:443\" {}\n}\n", i, i, i, i)
		}
		fmt.Fprintf(&src, "grant \"g%d\" {\n directory = \"${path.root}/d%d\"\n target = \"/d\"\n}\n", i, i)
		fmt.Fprintf(&src, "space \"s%d\" {\n image = image.i\n networks = [network.n%d]\n grants = [grant.g%d]\n env = { N = %d, M = \"x${local.l%d}\" }\n limits {\n  memory = \"64MiB\"\n }\n}\n", i, i/10*10, i, i, i)
		fmt.Fprintf(&src, "locals { l%d = %d }\n", i, i)
	}
	return fstest.MapFS{"main.hcl": {Data: src.Bytes()}}
}

// Chains of references are followed whatever their length, and values that nest
// through them end in a diagnostic.
func TestLongChains(t *testing.T) {
	const links = 5_000
	var flat, nested bytes.Buffer
	flat.WriteString("project = \"p\"\nlocals {\n a0 = 1\n")
	nested.WriteString("project = \"p\"\nlocals {\n a0 = 1\n")
	for i := 1; i < links; i++ {
		fmt.Fprintf(&flat, " a%d = local.a%d\n", i, i-1)
		fmt.Fprintf(&nested, " a%d = [local.a%d]\n", i, i-1)
	}
	flat.WriteString("}\n")
	nested.WriteString("}\n")
	if _, diags := Load(fstest.MapFS{"a.hcl": {Data: flat.Bytes()}}, Options{}); len(diags) > 0 {
		t.Errorf("a chain of references gives %s", diags)
	}
	_, diags := Load(fstest.MapFS{"a.hcl": {Data: nested.Bytes()}}, Options{})
	if len(diags) == 0 || Code(diags[0]) != "value-too-large" {
		t.Errorf("a chain of nested lists gives %s", diags)
	}
}
