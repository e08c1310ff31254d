/** What a server does, as MONITOR tells. ioredis gives up where the first line comes along with the answer to MONITOR: always, on a busy server. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'

/**
 * Resolves when all commands from then on are told of.
 * @param heard gets each command with its arguments, ASCII as it is, and whether a script made it @returns ends it
 */
export async function monitored(
  url: string,
  heard: (args: string[], isScript: boolean) => void,
): Promise<() => unknown> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const lines = createInterface({ input: socket, crlfDelay: Number.POSITIVE_INFINITY })
  const begun = once(lines, 'line')
  socket.write('MONITOR\r\n')
  await begun
  lines.on('line', (line) => {
    const told = /^\+[\d.]+ \[\d+ ([^\]]+)\] (.*)$/.exec(line)
    if (told === null) return
    const [, source, command = ''] = told
    heard(
      [...command.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) => text),
      source === 'lua',
    )
  })
  return () => socket.destroy()
}
