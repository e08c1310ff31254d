/** A payload as a tree that opens and closes. Nothing is changed: big integers, bytes and dates are shown as what they are. */
import { useState } from 'preact/hooks'
import type { PayloadView, Shown } from '../views.ts'
import { bytes, count } from './format.ts'
import { copy } from './notices.tsx'
import { Badge } from './parts.tsx'

/** Levels that are open at first. */
const OPEN = 3

const Leaf = ({ kind, children }: { kind: string; children: string }) => <span class={`v ${kind}`}>{children}</span>

export const Value = ({ value, depth = 0 }: { value: Shown; depth?: number }) => {
  if (value === null) return <Leaf kind="null">null</Leaf>
  if (typeof value === 'string') return <Leaf kind="text">{JSON.stringify(value)}</Leaf>
  if (typeof value === 'number') return <Leaf kind="number">{String(value)}</Leaf>
  if (typeof value === 'boolean') return <Leaf kind="bool">{String(value)}</Leaf>
  switch (value[0]) {
    case 'i':
      return <Leaf kind="number">{value[1]}</Leaf>
    case 'n':
      return <Leaf kind="number">{value[1]}</Leaf>
    case 'd':
      return <Leaf kind="date">{value[1]}</Leaf>
    case 's':
      return (
        <>
          <Leaf kind="text">{JSON.stringify(value[1])}</Leaf>{' '}
          <Badge kind="note">{`cut, ${count(value[2])} characters in all`}</Badge>
        </>
      )
    case 'b':
      return (
        <>
          <Leaf kind="bytes">{hexOf(value[1])}</Leaf> <Badge kind="note">{bytes(value[2])}</Badge>
        </>
      )
    case 'x':
      return <Badge kind="lock">redacted</Badge>
    case 'u':
      return <Leaf kind="null">undefined</Leaf>
    case 'a':
      return (
        <Branch
          open="["
          close="]"
          depth={depth}
          left={value[2]}
          entries={value[1].map((item, index) => [String(index), item])}
        />
      )
    case 'o':
      return <Branch open="{" close="}" depth={depth} left={value[2]} entries={value[1]} />
  }
}

interface BranchProps {
  open: string
  close: string
  depth: number
  left: number
  entries: readonly (readonly [string, Shown])[]
}

const Branch = ({ open, close, depth, left, entries }: BranchProps) => {
  const [isOpen, setOpen] = useState(depth < OPEN && entries.length <= 50)
  if (entries.length === 0 && left === 0) return <span class="v">{`${open}${close}`}</span>
  const size = entries.length + left
  return (
    <span class="branch">
      <button type="button" class="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {open}
        {!isOpen && ` ${count(size)} … ${close}`}
      </button>
      {isOpen && (
        <>
          <ul>
            {entries.map(([name, item], index) => (
              <li key={index}>
                <span class={open === '[' ? 'index' : 'name'}>{open === '[' ? name : JSON.stringify(name)}</span>
                {': '}
                <Value value={item} depth={depth + 1} />
              </li>
            ))}
            {left > 0 && <li class="mute">{`${count(left)} more are not shown`}</li>}
          </ul>
          <span class="v">{close}</span>
        </>
      )}
    </span>
  )
}

function hexOf(base64: string): string {
  const all = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  const shown = [...all.slice(0, 64)].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
  return all.length > 64 ? `${shown} …` : shown
}

/** JSON of the value; undefined: it cannot be edited as JSON without a change. */
export function jsonOf(value: Shown): string | undefined {
  const plain = plainOf(value)
  return plain === NOT_JSON ? undefined : JSON.stringify(plain, null, 2)
}

const NOT_JSON = Symbol('not JSON')

function plainOf(value: Shown): unknown {
  if (value === null || typeof value !== 'object') return value
  if (value[0] !== 'a' && value[0] !== 'o') return NOT_JSON
  if (value[2] > 0) return NOT_JSON
  if (value[0] === 'a') {
    const items = value[1].map(plainOf)
    return items.includes(NOT_JSON) ? NOT_JSON : items
  }
  const entries = value[1].map(([name, item]) => [name, plainOf(item)] as const)
  return entries.some(([, item]) => item === NOT_JSON) ? NOT_JSON : Object.fromEntries(entries)
}

const ENCODINGS: Readonly<Record<string, string>> = { json: 'JSON', msgpack: 'MessagePack', bytes: 'bytes' }

export const Payload = ({ title, view }: { title: string; view: PayloadView }) => {
  if (view.state === 'none') return null
  const json = view.state === 'shown' ? jsonOf(view.value) : undefined
  return (
    <section class="card payload">
      <header>
        <h2>{title}</h2>
        {'bytes' in view && <span class="mute">{`${bytes(view.bytes)} ${ENCODINGS[view.encoding] ?? ''}`}</span>}
        {view.state === 'shown' && view.redacted && <Badge kind="lock">partly redacted</Badge>}
        {json !== undefined && (
          <button type="button" class="quiet" aria-label={`Copy ${title}`} onClick={() => copy(json)}>
            Copy
          </button>
        )}
      </header>
      {view.state === 'locked' && <p class="locked">You may not see payloads of this queue.</p>}
      {view.state === 'sealed' && <p class="locked">Sealed: this process has no key that opens it.</p>}
      {view.state === 'undecodable' && (
        <p class="locked">It cannot be decoded: another program wrote it, or its bytes are damaged.</p>
      )}
      {view.state === 'shown' && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
        // biome-ignore lint/a11y/useSemanticElements: a section has no monospaced text of its own
        <pre class="tree" role="region" tabIndex={0} aria-label={title}>
          <Value value={view.value} />
        </pre>
      )}
    </section>
  )
}
