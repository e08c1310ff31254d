/** The Lua scripts of `contract/redis/`, by file name. The build replaces this module; see `texts.ts`. */
import { textsIn } from '../texts.ts'

export const CONTRACT: ReadonlyMap<string, string> = textsIn(new URL('../../../contract/redis/', import.meta.url))
