/** The search box with what may come next. */
import { useId, useRef, useState } from 'preact/hooks'
import { type Suggestion, suggestions } from './search.ts'

interface Props {
  text: string
  known: Readonly<Record<string, readonly string[]>>
  fault: string | undefined
  search: (text: string) => void
}

export const SearchBox = ({ text, known, fault, search }: Props) => {
  const [typed, setTyped] = useState(text)
  const [isOpen, setOpen] = useState(false)
  const [active, setActive] = useState(-1)
  const input = useRef<HTMLInputElement>(null)
  const id = useId()
  // What the address has changed to. Not by an effect, which might come after the first letters.
  const [given, setGiven] = useState(text)
  if (given !== text) {
    setGiven(text)
    setTyped(text)
  }
  const found = isOpen ? suggestions(typed, known) : []
  const take = (suggestion: Suggestion) => {
    setTyped(suggestion.text)
    setActive(-1)
    input.current?.focus()
    if (suggestion.text.endsWith(' ')) search(suggestion.text.trim())
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
      search(typed.trim())
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
        placeholder="group:tenant-7  error:timeout  pushed:<1h"
        autocomplete="off"
        spellcheck={false}
        data-search
        value={typed}
        onInput={(event) => {
          setTyped(event.currentTarget.value)
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
