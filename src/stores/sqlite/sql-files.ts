/** The SQL of `contract/sqlite/`, by file name. The build replaces this module; see `contract-files.ts`. */
import { filesIn } from '../contract-files.ts'

export const SQL_FILES: ReadonlyMap<string, string> = filesIn(new URL('../../../contract/sqlite/', import.meta.url))
