// Reads each Mermaid file named with Mermaid's own parser, and prints how many nodes and
// edges it sees. SPACES_TEST_MERMAID is a folder in which `npm install mermaid jsdom` ran.
import fs from "node:fs"
import { createRequire } from "node:module"
import { pathToFileURL } from "node:url"

const require = createRequire(process.env.SPACES_TEST_MERMAID + "/x.mjs")
const load = (name) => import(pathToFileURL(require.resolve(name)))
const { JSDOM } = await load("jsdom")
globalThis.window = new JSDOM("<!DOCTYPE html><body></body>").window
globalThis.document = window.document
const mermaid = (await load("mermaid")).default
mermaid.initialize({ startOnLoad: false, securityLevel: "strict" })
for (const file of process.argv.slice(2)) {
  const { db } = await mermaid.mermaidAPI.getDiagramFromText(fs.readFileSync(file, "utf8"))
  console.log(db.getVertices().size, db.getEdges().length)
}
