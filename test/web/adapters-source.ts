/** Preloaded into the examples, which import the package by its name: they get the sources beside them. */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

const root = new URL('../../', import.meta.url)
const { exports }: { exports: Record<string, { default: string } | undefined> } = JSON.parse(
  readFileSync(new URL('package.json', root), 'utf8'),
)

registerHooks({
  resolve(name, context, next) {
    const built = /^millpond(\/|$)/.test(name) ? exports[name.replace('millpond', '.')]?.default : undefined
    if (built === undefined) return next(name, context)
    const source = built.replace('./dist/', './src/').replace(/\.js$/, '.ts')
    return next(new URL(source, root).href, context)
  },
})
