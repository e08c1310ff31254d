/** Small parts that all views share. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { JobState } from '../../values/jobs/records.ts'
import { clock, count, duration, short } from './format.ts'
import { serverNow } from './live.ts'

export const Badge = ({ kind, children }: { kind: string; children: ComponentChildren }) => (
  <span class={`badge ${kind}`}>{children}</span>
)

export const State = ({ state }: { state: JobState }) => (
  <span class={`state ${state}`}>
    <i aria-hidden="true" />
    {state}
  </span>
)

export const Num = ({ value }: { value: number }) => <span title={count(value)}>{short(value)}</span>

/** How long ago, with the time itself on hover. An empty cell of a table shows a dash. */
export const Ago = ({ at, says = '' }: { at: number | null; says?: ' ago' | '' }) => {
  if (at === null) return null
  const now = serverNow()
  return (
    <time dateTime={new Date(at).toISOString()} title={clock(at)}>
      {at > now ? `in ${duration(at - now)}` : duration(now - at) + says}
    </time>
  )
}

export const Stat = ({ label, children, tone = '' }: { label: string; children: ComponentChildren; tone?: string }) => (
  <div class={`stat ${tone}`}>
    <dt>{label}</dt>
    <dd>{children}</dd>
  </div>
)

/** @param lines each drawn over the same time, from 0 to the greatest of all */
export const Sparkline = ({ lines, label }: { lines: readonly (readonly (number | null)[])[]; label: string }) => {
  const [width, height] = [120, 26]
  const known = lines.map((values) => values.filter((value) => value !== null))
  const most = Math.max(...known.flat(), 0)
  const pathOf = (values: readonly number[]) => {
    const step = width / Math.max(1, values.length - 1)
    const y = (value: number) => height - 1.5 - (most === 0 ? 0 : (value / most) * (height - 3))
    return values
      .map((value, index) => `${index === 0 ? 'M' : 'L'}${(index * step).toFixed(1)} ${y(value).toFixed(1)}`)
      .join('')
  }
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label} preserveAspectRatio="none">
      {known.map((values, index) => values.length > 1 && <path class={`line${index}`} d={pathOf(values)} />)}
    </svg>
  )
}

export const Empty = ({ children }: { children: ComponentChildren }) => <p class="empty">{children}</p>
/** Shown once it has taken a moment, so that a quick answer makes nothing flicker. */
export const Asking = () => (
  <p class="empty asking" role="status">
    Asking …
  </p>
)
export const Fault = ({ text }: { text: string | undefined }) =>
  text === undefined ? null : (
    <p class="fault" role="alert">
      {text}
    </p>
  )

/** A dialog over the page. It is open as long as it is drawn. */
export const Dialog = ({
  title,
  close,
  children,
}: {
  title: string
  close: () => void
  children: ComponentChildren
}) => {
  const box = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const before = document.activeElement
    box.current?.showModal()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it, too
    <dialog
      ref={box}
      aria-label={title}
      onClose={close}
      onCancel={close}
      onClick={(event) => event.target === box.current && close()}
    >
      <div class="dialog">
        <header>
          <h2>{title}</h2>
          <button type="button" class="icon" aria-label="Close" onClick={close}>
            ✕
          </button>
        </header>
        {children}
      </div>
    </dialog>
  )
}

/** A button that asks once more before it acts. */
export const Sure = ({
  label,
  sure,
  act,
  disabled = false,
}: {
  label: string
  sure: string
  act: () => void
  disabled?: boolean
}) => {
  const [asked, setAsked] = useState(false)
  // The focus follows when one takes the place of the other, and at no other time: it must not leave “No” by itself.
  const button = useRef<HTMLButtonElement>(null)
  const shown = useRef(asked)
  useEffect(() => {
    if (shown.current !== asked) button.current?.focus()
    shown.current = asked
  }, [asked])
  if (!asked) {
    return (
      <button key="ask" ref={button} type="button" class="danger" disabled={disabled} onClick={() => setAsked(true)}>
        {label}
      </button>
    )
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: for Escape on its buttons
    <span class="sure" onKeyDown={(event) => event.key === 'Escape' && setAsked(false)}>
      <button
        type="button"
        class="danger solid"
        ref={button}
        onClick={() => {
          setAsked(false)
          act()
        }}
      >
        {sure}
      </button>
      <button type="button" onClick={() => setAsked(false)}>
        No
      </button>
    </span>
  )
}

interface PagerProps {
  /** Where each page after the first begins, up to the present one. */
  pages: readonly string[]
  next: string | null
  turn: (pages: readonly string[]) => void
}

export const Pager = ({ pages, next, turn }: PagerProps) =>
  next === null && pages.length === 0 ? null : (
    <div class="pager">
      <button type="button" disabled={pages.length === 0} onClick={() => turn(pages.slice(0, -1))}>
        ← Back
      </button>
      <button type="button" disabled={next === null} onClick={() => next !== null && turn([...pages, next])}>
        Next →
      </button>
    </div>
  )
