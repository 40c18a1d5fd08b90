package picture
import ("testing";"os";"strconv")
func TestTmp(t *testing.T){ for i,s:=range []string{`"`,`\`,"]]>","</text><script>","end","%%{init: {}}%%","#quot;","`x`","&lt;",`"]; x --> y; n["`,"字字","\u202eabc","--> |x|","subgraph","<br/>","**b**","1. x","- x","title: x","$$x$$","fa:fa-car"} { _=os.WriteFile("/tmp/gr/h"+strconv.Itoa(i)+".mmd",[]byte(drawn(t,hostile(s),Mermaid)),0o600)} }
