/** Whose page a request comes from. */

/** A Host header that names this machine: pages of a site whose name is pointed here (DNS rebinding) have another. */
export function isThisMachine(host: string): boolean {
  const name = host.toLowerCase().replace(/:\d{1,5}$/, '')
  return name === 'localhost' || name === '[::1]' || /^127(\.\d{1,3}){3}$/.test(name)
}

export const hostOf = (request: Request): string => request.headers.get('host') ?? new URL(request.url).host

/** Whether a page of another origin sent it. Programs send neither of the headers. */
export function isForeign(request: Request, host: string): boolean {
  const site = request.headers.get('sec-fetch-site')
  if (site !== null && site !== 'same-origin' && site !== 'none') return true
  const origin = request.headers.get('origin')
  if (origin === null) return false
  return !URL.canParse(origin) || new URL(origin).host !== host.toLowerCase()
}
