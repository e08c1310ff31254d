/** Makes the files of the dashboard's page: one script, one style sheet, one HTML file and an icon. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const fileOf = (name: string): string => fileURLToPath(new URL(`../src/dashboard/page/${name}`, import.meta.url))

/** The texts by name, minified. */
export async function buildPage(): Promise<Map<string, string>> {
  const { outputFiles } = await build({
    entryPoints: { page: fileOf('main.tsx') },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    charset: 'utf8',
    // Their licences are in the file, at its end.
    legalComments: 'eof',
    outdir: 'page',
    write: false,
    logLevel: 'error',
  })
  const files = new Map<string, string>()
  for (const { path, text } of outputFiles) files.set(path.endsWith('.css') ? 'page.css' : 'page.js', text)
  for (const name of ['index.html', 'icon.svg']) files.set(name, readFileSync(fileOf(name), 'utf8'))
  return files
}
