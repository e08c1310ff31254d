/** The search box with what may come next. What is typed is searched for soon, so that the list is always the box's. */
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { type Suggestion, suggestions } from './search.ts'

/** Milliseconds without a key after which what was typed is searched for. */
const SOON = 300

/** @param text what is searched for @param search is to change it @returns what the box says, and how it is changed */
export function useTyped(
  text: string,
  search: (text: string, isTyping: boolean) => void,
): [typed: string, type: (typed: string) => void, apply: (typed: string) => void] {
  const [typed, setTyped] = useState(text)
  /** What was searched for last. Its address may come after further letters, which must stay. */
  const sent = useRef(text)
  // What the address has changed to. Not by an effect, which might come after the first letters.
  const [given, setGiven] = useState(text)
  if (given !== text) {
    setGiven(text)
    if (sent.current !== text) setTyped(text)
    sent.current = text
  }
  const apply = (next: string, isTyping = false) => {
    sent.current = next.trim()
    search(next.trim(), isTyping)
  }
  useEffect(() => {
    if (typed.trim() === text) return
    const timer = setTimeout(() => apply(typed, true), SOON)
    return () => clearTimeout(timer)
  }, [typed, text])
  return [typed, setTyped, apply]
}

interface Props {
  typed: string
  type: (typed: string) => void
  known: Readonly<Record<string, readonly string[]>>
  fault: string | undefined
  search: (text: string) => void
}

export const SearchBox = ({ typed, type, known, fault, search }: Props) => {
  const [isOpen, setOpen] = useState(false)
  const [active, setActive] = useState(-1)
  const input = useRef<HTMLInputElement>(null)
  const id = useId()
  const found = isOpen ? suggestions(typed, known) : []
  const take = (suggestion: Suggestion) => {
    type(suggestion.text)
    setActive(-1)
    input.current?.focus()
    if (suggestion.text.endsWith(' ')) search(suggestion.text)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const moves: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 }
    const move = moves[event.key]
    const chosen = found[active]
    if (move !== undefined && found.length > 0) {
      event.preventDefault()
      setActive((active + move + found.length + (active < 0 && move < 0 ? 1 : 0)) % found.length)
    } else if ((event.key === 'Enter' || event.key === 'Tab') && chosen !== undefined) {
      event.preventDefault()
      take(chosen)
    } else if (event.key === 'Enter') {
      setOpen(false)
      search(typed)
    } else if (event.key === 'Escape') {
      setOpen(false)
      setActive(-1)
    }
  }
  return (
    <div class="search">
      <input
        ref={input}
        role="combobox"
        aria-label="Search jobs"
        aria-expanded={found.length > 0}
        aria-controls={`${id}list`}
        aria-autocomplete="list"
        aria-activedescendant={active >= 0 && found.length > 0 ? `${id}${active}` : undefined}
        aria-invalid={fault !== undefined}
        placeholder="state:dead  code:HandlerFailed  pushed:<1h"
        autocomplete="off"
        spellcheck={false}
        data-search
        value={typed}
        onInput={(event) => {
          type(event.currentTarget.value)
          setOpen(true)
          setActive(-1)
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={onKeyDown}
      />
      <div id={`${id}list`} role="listbox" aria-label="Suggestions" class={found.length > 0 ? 'list' : 'hidden'}>
        {found.map((suggestion, index) => (
          <div
            key={suggestion.label}
            id={`${id}${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === active}
            onMouseDown={(event) => {
              // The box keeps the focus.
              event.preventDefault()
              take(suggestion)
            }}
          >
            <b>{suggestion.label}</b>
            <span class="mute">{suggestion.help}</span>
          </div>
        ))}
      </div>
      {fault !== undefined && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
    </div>
  )
}
