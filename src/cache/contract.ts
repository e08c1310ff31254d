/** The Lua scripts of `contract/cache/`, by file name. The build replaces this module. */
import { textsIn } from '../stores/texts.ts'

export const CONTRACT: ReadonlyMap<string, string> = textsIn(new URL('../../contract/cache/', import.meta.url))
