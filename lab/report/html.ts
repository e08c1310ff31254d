/** Text that goes into a page: whatever is not HTML already is escaped. */

export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

export const escaped = (text: string): string => text.replace(/[&<>"']/g, (found) => ENTITIES[found] ?? found)

export const raw = (text: string): Html => new Html(text)
export const join = (parts: readonly Html[]): Html => new Html(parts.map(({ text }) => text).join('\n'))

export function html(words: TemplateStringsArray, ...values: readonly (Html | string | number)[]): Html {
  const parts = words.map((word, at) => {
    const value = values[at]
    if (value === undefined) return word
    return word + (value instanceof Html ? value.text : escaped(String(value)))
  })
  return new Html(parts.join(''))
}
