/** The SQL of `contract/postgres/`, by file name. The build replaces this module; see `texts.ts`. */
import { textsIn } from '../texts.ts'

export const CONTRACT: ReadonlyMap<string, string> = textsIn(new URL('../../../contract/postgres/', import.meta.url))
