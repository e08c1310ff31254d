/** The page. */
import { render } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import 'uplot/dist/uPlot.min.css'
import './style/base.css'
import './style/controls.css'
import './style/views.css'
import './style/narrow.css'
import type { Capabilities } from '../../store.ts'
import { Actions } from './actions.tsx'
import { Alerts } from './alerts.tsx'
import { ask } from './api.ts'
import { Job } from './job.tsx'
import { onKeys, PALETTE_KEY } from './keys.ts'
import { connect, type Live, useLive } from './live.ts'
import { Login } from './login.tsx'
import { Notices } from './notices.tsx'
import { Overview } from './overview.tsx'
import { Palette } from './palette.tsx'
import { Empty } from './parts.tsx'
import { Queue } from './queue.tsx'
import { go, queueLink, type Route, useArrival, useRoute } from './route.ts'
import { Schedule } from './schedule.tsx'
import { Schedules } from './schedules.tsx'
import { cycleTheme, showTheme } from './theme.ts'
import { Workers } from './workers.tsx'

const STATES: Readonly<Record<Live['state'], string>> = {
  ...{ connecting: 'connecting', live: 'live', lost: 'no answer', login: 'signed out', forbidden: 'not allowed' },
}
/** The page hears from its server, which hears nothing of a store. */
const isAway = ({ state, tick }: Live): boolean =>
  state === 'live' && tick?.stores.some(({ trouble }) => trouble !== undefined) === true

/** With what one of the stores must be able to do. */
const VIEWS: readonly (readonly [view: Route['view'], title: string, can?: (of: Capabilities) => boolean])[] = [
  ['overview', 'Overview'],
  ['workers', 'Workers'],
  ['schedules', 'Schedules', ({ schedules }) => schedules],
  ['alerts', 'Alerts', ({ lists }) => lists],
  ['actions', 'Actions', ({ restore, lists }) => restore && lists],
]

const App = () => {
  const live = useLive()
  const route = useRoute()
  const [isOpen, setOpen] = useState(false)
  const main = useRef<HTMLElement>(null)
  useEffect(() => onKeys({ palette: () => setOpen(true), up: () => go(above(route)) }), [JSON.stringify(route)])
  const title = titleOf(route)
  useArrival(title, main)
  if (live.state === 'login') return <Login />
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        To the content
      </button>
      <header class="top">
        <a class="logo" href="#/" aria-label="Millpond">
          <img src="icon.svg" alt="" width={22} height={22} />
          <span>Millpond</span>
        </a>
        <nav aria-label="Views">
          {VIEWS.filter(
            ([, , can]) => can === undefined || live.tick?.stores.some(({ capabilities }) => can(capabilities)),
          ).map(([view, title]) => (
            <a
              key={view}
              href={view === 'overview' ? '#/' : `#/${view}`}
              aria-current={route.view === view ? 'page' : undefined}
            >
              {title}
            </a>
          ))}
        </nav>
        <span class="grow" />
        <span class={`link ${isAway(live) ? 'lost' : live.state}`} role="status">
          <i aria-hidden="true" />
          {isAway(live) ? 'a store does not answer' : STATES[live.state]}
        </span>
        <button type="button" class="quiet find" aria-label={`Go to … ${PALETTE_KEY}`} onClick={() => setOpen(true)}>
          <i aria-hidden="true">⌕</i>
          <span>Go to …</span> <kbd>{PALETTE_KEY}</kbd>
        </button>
        <button type="button" class="icon" aria-label="Light, dark, or as the system" onClick={cycleTheme}>
          ◐
        </button>
        {live.tick?.isSession && (
          <button type="button" class="quiet" onClick={() => ask('logout', {}).finally(connect)}>
            Sign out
          </button>
        )}
      </header>
      <main ref={main} tabIndex={-1} aria-label={title}>
        {live.state === 'forbidden' ? <Empty>You may not use this dashboard.</Empty> : <View route={route} />}
      </main>
      {isOpen && <Palette tick={live.tick} route={route} close={() => setOpen(false)} />}
      <Notices />
    </>
  )
}

const View = ({ route }: { route: Route }) => {
  switch (route.view) {
    case 'overview':
      return <Overview />
    case 'schedules':
      return <Schedules />
    case 'workers':
      return <Workers />
    case 'alerts':
      return <Alerts />
    case 'actions':
      return <Actions />
    case 'queue':
      return <Queue key={`${route.store} ${route.queue}`} {...route} />
    case 'schedule':
      return <Schedule key={`${route.store} ${route.name}`} {...route} />
    case 'job':
      return <Job key={`${route.store} ${route.id}`} {...route} />
  }
}

function titleOf(route: Route): string {
  if (route.view === 'queue') return `${route.queue} · Millpond`
  if (route.view === 'schedule') return `${route.name} · Millpond`
  if (route.view === 'job') return `Job ${route.id.slice(-12)} · Millpond`
  const title = VIEWS.find(([view]) => view === route.view)?.[1]
  return title === undefined || route.view === 'overview' ? 'Millpond' : `${title} · Millpond`
}

function above(route: Route): string {
  if (route.view === 'schedule') return '#/schedules'
  return route.view === 'queue' && route.tab !== 'jobs' ? queueLink(route.store, route.queue) : '#/'
}

showTheme()
connect()
const place = document.getElementById('app')
if (place !== null) render(<App />, place)
