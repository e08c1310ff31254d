/** ⌘K or Ctrl+K: everywhere, and what can be done here, by a few letters. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Tick } from '../views.ts'
import { act } from './notices.tsx'
import { Dialog, Empty } from './parts.tsx'
import { go, jobLink, queueLink, type Route } from './route.ts'
import { cycleTheme } from './theme.ts'

interface Entry {
  label: string
  hint: string
  run: () => void
}

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export const Palette = ({ tick, route, close }: { tick: Tick | undefined; route: Route; close: () => void }) => {
  const [typed, setTyped] = useState('')
  const [active, setActive] = useState(0)
  const list = useRef<HTMLDivElement>(null)
  const words = typed.toLowerCase().split(/\s+/)
  const all = entriesOf(tick, route, typed.trim())
  const found = all
    .filter(({ label, hint }) => words.every((word) => `${label} ${hint}`.toLowerCase().includes(word)))
    .slice(0, 12)
  useEffect(() => list.current?.children[active]?.scrollIntoView({ block: 'nearest' }), [active])
  const run = (entry: Entry | undefined) => {
    if (entry === undefined) return
    close()
    entry.run()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') setActive(Math.min(found.length - 1, active + 1))
    else if (event.key === 'ArrowUp') setActive(Math.max(0, active - 1))
    else if (event.key === 'Enter') run(found[active])
    else return
    event.preventDefault()
  }
  return (
    <Dialog title="Go to" close={close}>
      <input
        class="wide"
        role="combobox"
        aria-label="Where to, or what to do"
        aria-expanded={found.length > 0}
        aria-controls="palette"
        aria-activedescendant={found.length > 0 ? `palette${active}` : undefined}
        placeholder="A queue, a view, an action, or the id of a job"
        autocomplete="off"
        autofocus
        value={typed}
        onInput={(event) => {
          setTyped(event.currentTarget.value)
          setActive(0)
        }}
        onKeyDown={onKeyDown}
      />
      <div id="palette" role="listbox" aria-label="Entries" class="list open" ref={list}>
        {found.map((entry, index) => (
          <div
            key={`${entry.label} ${entry.hint}`}
            id={`palette${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === active}
            onClick={() => run(entry)}
            onKeyDown={() => {}}
          >
            <b>{entry.label}</b>
            <span class="mute">{entry.hint}</span>
          </div>
        ))}
      </div>
      {found.length === 0 && <Empty>Nothing has this name.</Empty>}
      <p class="mute keys">
        <kbd>j</kbd> <kbd>k</kbd> next, previous · <kbd>/</kbd> search · <kbd>g</kbd> <kbd>o</kbd> overview ·{' '}
        <kbd>g</kbd> <kbd>w</kbd> workers · <kbd>u</kbd> up
      </p>
    </Dialog>
  )
}

function entriesOf(tick: Tick | undefined, route: Route, typed: string): Entry[] {
  const entries: Entry[] = []
  const stores = tick?.stores ?? []
  const several = stores.length > 1
  if (ID.test(typed)) {
    for (const { name } of stores)
      entries.push({ label: typed, hint: `job in ${name}`, run: () => go(jobLink(name, typed.toLowerCase())) })
  }
  if (route.view === 'queue') {
    const { store, queue } = route
    const known = stores.find(({ name }) => name === store)?.queues.find(({ name }) => name === queue)
    if (known?.may.operate) {
      const [name, label] = known.paused ? ['resume', 'Resume'] : ['pause', 'Pause']
      entries.push({
        label: `${label} ${queue}`,
        hint: 'action',
        run: () => void act(name, { store, queue }, `${queue}: ${label.toLowerCase()}d`),
      })
    }
    for (const tab of ['jobs', 'charts', 'groups', 'settings']) {
      entries.push({ label: `${queue}: ${tab}`, hint: 'this queue', run: () => go(queueLink(store, queue, tab)) })
    }
    entries.push({
      label: `${queue}: dead jobs`,
      hint: 'this queue',
      run: () => go(queueLink(store, queue, 'jobs', 'state:dead')),
    })
  }
  entries.push(
    { label: 'Overview', hint: 'view', run: () => go('#/') },
    { label: 'Workers', hint: 'view', run: () => go('#/workers') },
    { label: 'Schedules', hint: 'view', run: () => go('#/schedules') },
    { label: 'Alerts', hint: 'view', run: () => go('#/alerts') },
    { label: 'Actions', hint: 'view', run: () => go('#/actions') },
  )
  for (const { name, queues } of stores) {
    for (const queue of queues) {
      entries.push({
        label: queue.name,
        hint: several ? `queue in ${name}` : 'queue',
        run: () => go(queueLink(name, queue.name)),
      })
    }
  }
  entries.push({ label: 'Light, dark, or as the system', hint: 'appearance', run: cycleTheme })
  return entries
}
