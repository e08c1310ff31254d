/**
 * Refuses a Node that is too old, and says so. Each entry point imports this module before all others: without it an old Node
 * fails later, with an error that names something else.
 */
import { MillpondError } from '../errors/errors.ts'

const { bun, deno, node } = process.versions
const [major = 0, minor = 0] = node.split('.').map(Number)
// Deno and Bun name the Node that they imitate.
if (bun === undefined && deno === undefined && (major < 22 || (major === 22 && minor < 18))) {
  throw new MillpondError('NotSupported', `this is Node ${node}; Millpond needs Node 22.18 or later`)
}
