/** The library as another checkout of the repository has it, for what is measured beside this one. */
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

type Library = typeof import('../src/index.ts')
type Web = typeof import('../src/web/index.ts')

/** This one. */
export const HERE = fileURLToPath(new URL('../', import.meta.url))

/** Both have the API that the lab uses; an older one lacks later parts. */
export const libraryOf = (checkout: string): Promise<Library> => import(file(checkout, 'src/index.ts'))
export const webOf = (checkout: string): Promise<Web> => import(file(checkout, 'src/web/index.ts'))

const file = (checkout: string, path: string): string => pathToFileURL(join(checkout, path)).href
