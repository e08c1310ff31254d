/**
 * Makes what is published: compiles `src/` and embeds what it reads from the disk, so that a bundle of the package needs no files.
 * `node build/main.ts [FOLDER]`; the folder is `dist` unless given.
 *
 * In the sources these modules read files; here each is replaced by one that holds the texts:
 *   stores/STORE/sql-files.js, lua-files.js  the SQL or Lua of `contract/STORE/`
 *   cache/redis/lua-files.js                 the Lua of `contract/cache/`
 *   FOLDER/PROGRAM-code.js                   the code of a thread or process with all that it imports, as a data: URL
 *   serve/version.js                         the package's version
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { LUA_FILES as cache } from '../src/cache/redis/lua-files.ts'
import { SQL_FILES as postgres } from '../src/stores/postgres/sql-files.ts'
import { LUA_FILES as redis } from '../src/stores/redis/lua-files.ts'
import { SQL_FILES as sqlite } from '../src/stores/sqlite/sql-files.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const folder = resolve(process.argv[2] ?? join(ROOT, 'dist'))
const inFolder = (name: string) => join(folder, name)

/** A module of one export; `undefined` of JSON cannot come here. */
function write(name: string, what: string, code: string): void {
  writeFileSync(inFolder(name), `/** ${what} Made by build/main.ts. */\n${code}\n`)
}

rmSync(folder, { recursive: true, force: true })
const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
execFileSync(process.execPath, [compiler, '-p', join(ROOT, 'tsconfig.build.json'), '--outDir', folder], {
  stdio: 'inherit',
})

for (const [module, contract, files] of [
  ['stores/sqlite/sql-files', 'sqlite', { SQL_FILES: sqlite }],
  ['stores/postgres/sql-files', 'postgres', { SQL_FILES: postgres }],
  ['stores/redis/lua-files', 'redis', { LUA_FILES: redis }],
  ['cache/redis/lua-files', 'cache', { LUA_FILES: cache }],
] as const) {
  for (const [name, texts] of Object.entries(files)) {
    const code = `export const ${name} = new Map(${JSON.stringify([...texts], null, 1)});`
    write(`${module}.js`, `The texts of contract/${contract}/, by file name.`, code)
  }
}

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
write('serve/version.js', 'Of this package.', `export const version = () => ${JSON.stringify(version)};`)

/** Programs that run in a thread or process of their own: module, function that gives its URL. One may hold another one before it. */
const PROGRAMS = [
  ['stores/sqlite/connection/thread', 'threadCode'],
  ['worker/isolated/watchdog', 'watchdogCode'],
  ['worker/isolated/child', 'childCode'],
] as const

for (const [module, name] of PROGRAMS) {
  const bundle = await build({
    entryPoints: [inFolder(`${module}.js`)],
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    legalComments: 'none',
    write: false,
    logLevel: 'error',
    // Without the native part, which would have to be a file.
    alias: { msgpackr: 'msgpackr/pack' },
    nodePaths: [join(ROOT, 'node_modules')],
    // In stack traces this name stands for the whole URL.
    footer: { js: `//# sourceURL=millpond/${module}.js` },
  })
  const code = JSON.stringify(bundle.outputFiles[0]?.text)
  const url = "'data:text/javascript;base64,' + Buffer.from(CODE).toString('base64')"
  write(
    `${module}-code.js`,
    'A program with all that it imports.',
    `const CODE = ${code};\nexport const ${name} = () => new URL(${url});`,
  )
}
// Programs are in their -code.js, and nothing else imports them; the readers of files are of no use.
for (const name of [...PROGRAMS.map(([module]) => module), 'stores/contract-files']) {
  for (const ending of ['.js', '.d.ts']) rmSync(inFolder(name + ending))
}
