import { scriptsIn } from '../../redis-client/scripts.ts'
import { LUA_FILES } from '../lua-files.ts'

/** A script of `contract/redis/`. The names of its keys are last parts, such as `jobs`; those with `@` belong to the hash tag. */
export const scriptOf = scriptsIn(LUA_FILES)
