/** Makes `docs/errors.md` of `contract/errors.json`: run `node test/unit/errors-doc.ts` after changing it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const PAGE = new URL('../../docs/errors.md', import.meta.url)
const CONTRACT = new URL('../../contract/errors.json', import.meta.url)

export interface ErrorEntry {
  meaning: string
  action: string
  retryable: boolean
}

export function errorsContract(): Record<string, ErrorEntry> {
  return JSON.parse(readFileSync(CONTRACT, 'utf8'))
}

/** A Markdown table with its columns aligned, as the formatter wants it. */
function table(rows: readonly (readonly string[])[]): string {
  const escaped = rows.map((row) => row.map((cell) => cell.replaceAll('|', '\\|')))
  const widths = (escaped[0] ?? []).map((_, column) => Math.max(...escaped.map((row) => row[column]?.length ?? 0)))
  const lines = escaped.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)))
  lines.splice(
    1,
    0,
    widths.map((width) => '-'.repeat(width)),
  )
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

export function errorsPage(): string {
  const rows = Object.entries(errorsContract()).map(([code, { meaning, action, retryable }]) => {
    return [`\`${code}\``, meaning, action, retryable ? 'yes' : 'no']
  })
  return `<!-- Made of contract/errors.json by \`node test/unit/errors-doc.ts\`; change that, not this. -->

# Errors

A failure of Millpond is a \`MillpondError\` (not one: the reason of your own \`signal\`; on PostgreSQL, a statement that fails in \`ctx.tx\`). It has one of these codes in \`code\`, a message that says what to do, and, if there is
one, the original error in \`cause\`. \`retryable\` tells whether the same call may succeed later, unchanged.
Some errors also have \`id\` and \`queue\` (the job and its queue), \`issues\` (what a schema found) or \`pushed\` (how many jobs
of a \`pushMany\`, from the first, are stored).

\`\`\`ts prelude=errors
import { isMillpondError } from 'millpond'

async function answer(mail: Mail): Promise<Response> {
  try {
    await emails.push(mail)
    return new Response(null, { status: 202 })
  } catch (error) {
    if (isMillpondError(error, 'QueueFull')) return new Response('busy', { status: 503 })
    throw error
  }
}
\`\`\`

## Secrets and payloads

No error, warning or log of Millpond shows a password, token or payload, not even in nested properties. The error of a driver or of the platform is kept in \`cause\` as a copy: its name, code,
message and stack, and the names of constraint, table and column. Parameters, settings and \`detail\` are left out, and values that messages repeat are masked. In a password in a URL, write
\`% / ? # @\` as \`%25 %2F %3F %23 %40\`.

Errors that your own functions throw are passed on unchanged. They are kept with the job (name, message, stack), and are the \`cause\` of \`JobFailed\`. Millpond never writes their messages to stderr.

A job keeps the code of its last failed attempt in \`error.code\`; \`pond.job(id)\` and the events \`failed\` and \`dead\` have it.

${table([['code', 'meaning', 'what to do', 'retryable'], ...rows])}
`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(PAGE, errorsPage())
