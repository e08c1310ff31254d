/** Preloaded into the examples, which import the package by its name: they get the sources beside them. */
import { registerHooks } from 'node:module'

registerHooks({
  resolve(name, context, next) {
    const [, path = '/index'] = /^millpond(\/.*)?$/.exec(name) ?? []
    if (!/^millpond(\/|$)/.test(name)) return next(name, context)
    const file = path === '/web' ? '/web/index' : path
    return next(new URL(`../../src${file}.ts`, import.meta.url).href, context)
  },
})
