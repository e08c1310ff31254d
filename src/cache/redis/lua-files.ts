/** The Lua scripts of `contract/cache/`, by file name. The build replaces this module; see `stores/contract-files.ts`. */
import { filesIn } from '../../stores/contract-files.ts'

export const LUA_FILES: ReadonlyMap<string, string> = filesIn(new URL('../../../contract/cache/', import.meta.url))
