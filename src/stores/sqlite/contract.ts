/** The SQL of `contract/sqlite/`, by file name. The build replaces this module; see `texts.ts`. */
import { textsIn } from '../texts.ts'

export const CONTRACT: ReadonlyMap<string, string> = textsIn(new URL('../../../contract/sqlite/', import.meta.url))
