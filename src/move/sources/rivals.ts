/** Which rival's data a URL means. Its reader is loaded when it is first used. */
import { isMillpondError, MillpondError } from '../../values/errors/errors.ts'
import type { OpenRival, Source } from '../source.ts'

const RIVALS: Readonly<Record<string, () => Promise<{ open: OpenRival }>>> = {
  'bullmq+redis': () => import('./bullmq/index.ts'),
  'bullmq+rediss': () => import('./bullmq/index.ts'),
  'pgboss+postgres': () => import('./pg-boss/index.ts'),
  'pgboss+postgresql': () => import('./pg-boss/index.ts'),
}

export const isRival = (url: string): boolean => Object.hasOwn(RIVALS, url.split(':', 1)[0] ?? '')

/** @returns undefined: it is the URL of a store */
export async function openRival(...[url, onTrouble, stop]: Parameters<OpenRival>): Promise<Source | undefined> {
  const [scheme = ''] = url.split(':', 1)
  const load = Object.hasOwn(RIVALS, scheme) ? RIVALS[scheme] : undefined
  return load === undefined ? undefined : (await load()).open(url, onTrouble, stop)
}

/** An unknown scheme may be a rival's that was misspelt: says which are known. */
export function alsoRivals(error: unknown): never {
  if (!isMillpondError(error, 'UnknownScheme')) throw error
  const schemes = Object.keys(RIVALS).map((scheme) => `${scheme}:`)
  throw new MillpondError('UnknownScheme', `${error.message}; jobs of other libraries are at ${schemes.join(', ')}`)
}
