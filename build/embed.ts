/**
 * Replaces the modules that read files, in the sources, by ones that hold the texts:
 *
 *   stores/STORE/sql-files.js, lua-files.js  the SQL or Lua of `contract/STORE/`
 *   cache/redis/lua-files.js                 the Lua of `contract/cache/`
 *   FOLDER/PROGRAM-code.js                   the code of a thread or process with all that it imports, as a data: URL
 *   dashboard/page-files.js                  the files of the dashboard's page
 *   values/runtime/version.js                the package's version
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants } from 'node:zlib'
import { build, type PluginBuild } from 'esbuild'
import { LUA_FILES as cache } from '../src/cache/redis/lua-files.ts'
import { SQL_FILES as postgres } from '../src/stores/postgres/sql-files.ts'
import { LUA_FILES as redis } from '../src/stores/redis/lua-files.ts'
import { SQL_FILES as sqlite } from '../src/stores/sqlite/sql-files.ts'
import { buildPage } from './page.ts'

const MODULES = fileURLToPath(new URL('../node_modules', import.meta.url))

/** Programs that run in a thread or process of their own: module, function that gives its URL. One may hold another one before it. */
const PROGRAMS = [
  ['stores/sqlite/connection/thread', 'threadCode'],
  ['worker/isolated/watchdog', 'watchdogCode'],
  ['worker/isolated/child', 'childCode'],
] as const

/** @param folder the compiled sources */
export async function embed(folder: string, version: string): Promise<void> {
  /** A module of one export. */
  const write = (name: string, what: string, code: string) =>
    writeFileSync(join(folder, `${name}.js`), `/** ${what} Made by build/main.ts. */\n${code}\n`)

  for (const [module, contract, files] of [
    ['stores/sqlite/sql-files', 'sqlite', { SQL_FILES: sqlite }],
    ['stores/postgres/sql-files', 'postgres', { SQL_FILES: postgres }],
    ['stores/redis/lua-files', 'redis', { LUA_FILES: redis }],
    ['cache/redis/lua-files', 'cache', { LUA_FILES: cache }],
  ] as const) {
    for (const [name, texts] of Object.entries(files)) {
      const code = `export const ${name} = new Map(JSON.parse(${packed(JSON.stringify([...texts]))}));`
      write(module, `The texts of contract/${contract}/, by file name.`, `${UNPACK}\n${code}`)
    }
  }
  write('values/runtime/version', 'Of this package.', `export const version = () => ${JSON.stringify(version)};`)

  const page = `JSON.parse(${packed(JSON.stringify([...(await buildPage())]))})`
  const files = `let files;\nexport const pageFiles = async () => (files ??= new Map(${page}));`
  write('dashboard/page-files', "The files of the dashboard's page, by name.", `${UNPACK}\n${files}`)

  for (const [module, name] of PROGRAMS) {
    write(`${module}-code`, 'A program with all that it imports.', await starter(folder, module, name))
  }
}

/** A module that gives the program's URL. The SQL that the program runs is in the package once: it is put before the code. */
async function starter(folder: string, module: string, name: string): Promise<string> {
  const code = await program(folder, module)
  const isSql = code.includes(SQL)
  const sql = isSql ? `\`const ${SQL} = \${JSON.stringify([...SQL_FILES])};\` + ` : ''
  const text = `Buffer.from(${sql}${packed(code)}).toString('base64')`
  return [
    ...(isSql ? ["import { SQL_FILES } from '../sql-files.js';"] : []),
    UNPACK,
    `export const ${name} = () => new URL('data:text/javascript;base64,' + ${text});`,
  ].join('\n')
}

/** Of texts that nobody reads in the package: minified, and a sixth smaller than with gzip alone. */
function packed(text: string): string {
  const bytes = brotliCompressSync(text, {
    params: { [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS },
  })
  return `brotliDecompressSync(Buffer.from('${bytes.toString('base64')}', 'base64')).toString()`
}
const UNPACK = "import { brotliDecompressSync } from 'node:zlib';"

/** Stands for the SQL in a program's code. */
const SQL = 'MILLPOND_SQL_FILES'

async function program(folder: string, module: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(folder, `${module}.js`)],
    absWorkingDir: folder,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    legalComments: 'none',
    // Its lines are those of no file; names stay, for stack traces.
    minifyWhitespace: true,
    write: false,
    logLevel: 'error',
    // Without the native part, which would have to be a file.
    alias: { msgpackr: join(MODULES, 'msgpackr/pack.js') },
    plugins: [{ name: 'sql', setup: withoutSql }],
    // In stack traces this name stands for the whole URL.
    footer: { js: `//# sourceURL=millpond/${module}.js` },
  })
  return outputFiles[0]?.text ?? ''
}

function withoutSql({ onLoad }: PluginBuild): void {
  onLoad({ filter: /sql-files\.js$/ }, () => ({ contents: `export const SQL_FILES = new Map(${SQL});` }))
}
