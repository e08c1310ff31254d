/** Reads the URL of a server. No error of it shows any of the URL: where it is written wrongly, a password may stand anywhere in it. */
import { MillpondError } from '../values/errors/errors.ts'

const ESCAPES = 'in a user name or password write % as %25, / as %2F, ? as %3F, # as %23 and @ as %40'

/**
 * @param text a password may hold @, which the last one ends
 * @param example how such a URL looks
 * @throws InvalidOption
 */
function serverUrl(text: string, example: string): URL {
  const [, authority = '', rest = ''] = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)(.*)$/is.exec(text) ?? []
  // Such as redis://user:12/34@host, which is the host "user" to a URL. With a user before the host, a query may well hold an @.
  const [path = ''] = rest.split('?')
  if ((authority.includes('@') ? path : rest).includes('@')) throw invalid(`has an @ behind its host: ${ESCAPES}`)
  try {
    return new URL(text)
  } catch {
    throw invalid(`is not one such as ${example}; ${ESCAPES}`)
  }
}

/**
 * The servers of a URL that names several, one after the other: `postgres://one:5432,two:5432/database` is not a URL to
 * the rest of the world.
 */
export function serverUrls(text: string, example: string): [URL, ...URL[]] {
  const [, before = '', hosts = '', rest = ''] = /^([a-z+]+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/is.exec(text) ?? []
  const [first, ...others] = hosts.split(',')
  if (others.length === 0) return [serverUrl(text, example)]
  const urlOf = (host: string | undefined) => serverUrl(before + host + rest, example)
  return [urlOf(first), ...others.map(urlOf)]
}

/** A user name or password as it is meant; undefined: there is none. @throws InvalidOption */
export function credential(encoded: string): string | undefined {
  if (encoded === '') return undefined
  try {
    return decodeURIComponent(encoded)
  } catch {
    throw invalid(`has a % that begins no escape: ${ESCAPES}`)
  }
}

function invalid(fault: string): MillpondError {
  return new MillpondError('InvalidOption', `the store's URL ${fault}`)
}
