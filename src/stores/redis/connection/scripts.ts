import { scriptsIn } from '../../redis-client/scripts.ts'
import { LUA_FILES } from '../lua-files.ts'

/** A script of `contract/redis/`. The names of its keys are last parts, such as `jobs`. */
export const scriptOf = scriptsIn(LUA_FILES)
