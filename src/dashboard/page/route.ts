/** Where the page is: the part of the URL behind `#`, which is never sent to a server. */
import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

/** Views of all stores. */
const PLAIN = ['workers', 'schedules', 'alerts', 'actions'] as const

export type Route =
  | { view: 'overview' }
  | { view: 'queue'; store: string; queue: string; tab: string; search: string }
  | { view: 'job'; store: string; id: string }
  | { view: 'schedule'; store: string; name: string }
  | { view: (typeof PLAIN)[number] }

export function routeOf(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?')
  const [view = '', store = '', name = '', tab = ''] = path.split('/').map(decoded)
  if (view === 'queue' && name !== '') {
    return { view, store, queue: name, tab: tab || 'jobs', search: new URLSearchParams(query).get('q') ?? '' }
  }
  if (view === 'job' && name !== '') return { view, store, id: name }
  if (view === 'schedule' && name !== '') return { view, store, name }
  return { view: PLAIN.find((one) => one === view) ?? 'overview' }
}

export const queueLink = (store: string, queue: string, tab = 'jobs', search = ''): string => {
  const query = search === '' ? '' : `?q=${encodeURIComponent(search)}`
  return `#/queue/${encodeURIComponent(store)}/${encodeURIComponent(queue)}${tab === 'jobs' ? '' : `/${tab}`}${query}`
}
export const jobLink = (store: string, id: string): string => `#/job/${encodeURIComponent(store)}/${id}`

export const scheduleLink = (store: string, name: string): string =>
  `#/schedule/${encodeURIComponent(store)}/${encodeURIComponent(name)}`

export const go = (link: string): void => {
  location.hash = link
}
/** The same, in place of where the page is: the way back leaves it out. */
export const replace = (link: string): void => location.replace(link)

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash)
  useEffect(() => {
    const changed = () => setHash(location.hash)
    addEventListener('hashchange', changed)
    // It may have changed since the page was drawn.
    changed()
    return () => removeEventListener('hashchange', changed)
  }, [])
  return routeOf(hash)
}

/** Begins a new view at its top, with the focus in it. @param title tells views apart; a search and the parts of a queue share one */
export function useArrival(title: string, main: RefObject<HTMLElement | null>): void {
  const shown = useRef(title)
  useEffect(() => {
    document.title = title
    // Where the browser was before, it goes back by itself to where the reader was.
    const isNew = history.state === null
    history.replaceState(true, '')
    if (shown.current === title) return
    shown.current = title
    if (isNew) scrollTo(0, 0)
    // What had the focus may be gone with the view before. A link in the list of views keeps it.
    if (document.activeElement === document.body) main.current?.focus({ preventScroll: true })
  }, [title, location.hash])
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
