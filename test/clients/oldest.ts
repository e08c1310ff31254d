/** Preloaded, it puts the oldest clients that the package takes in the place of the current ones. */
import { registerHooks } from 'node:module'

const OLDEST: Readonly<Record<string, string>> = { ioredis: 'ioredis-oldest', pg: 'pg-oldest' }

registerHooks({ resolve: (name, context, next) => next(OLDEST[name] ?? name, context) })
