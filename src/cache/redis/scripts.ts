import { scriptsIn } from '../../stores/redis-client/scripts.ts'
import { LUA_FILES } from './lua-files.ts'

/** A script of `contract/cache/`. */
export const scriptOf = scriptsIn(LUA_FILES)
