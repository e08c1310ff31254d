/** All that runs on the stores, on other ways to them: see support/variants.ts. In one process, as most of the time is the start of one. */
import { globSync, readFileSync } from 'node:fs'

process.env.MILLPOND_TEST_STORES = 'variants'
const files = globSync('test/{conformance,model,api}/*.test.ts', { cwd: new URL('../../', import.meta.url) })
for (const file of files.filter((name) => !name.endsWith('.deep.test.ts')).sort()) {
  const url = new URL(`../../${file}`, import.meta.url)
  if (/(?:suite|stores)\.ts'/.test(readFileSync(url, 'utf8'))) await import(url.href)
}
