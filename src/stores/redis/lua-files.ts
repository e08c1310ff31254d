/** The Lua scripts of `contract/redis/`, by file name. The build replaces this module; see `contract-files.ts`. */
import { filesIn } from '../contract-files.ts'

export const LUA_FILES: ReadonlyMap<string, string> = filesIn(new URL('../../../contract/redis/', import.meta.url))
