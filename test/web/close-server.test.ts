/** What a server that closes does with its connections. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { closeServer } from '../../src/web/node.ts'
import { gate, refused } from '../api/suite.ts'
import { until } from '../support/until.ts'
import { listening } from './serving.ts'

const REQUEST = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'

interface Talk {
  socket: Socket
  heard(): string
  closed: Promise<unknown>
}

async function talk(origin: string): Promise<Talk> {
  const socket = connect(Number(new URL(origin).port), '127.0.0.1')
  await once(socket, 'connect')
  let heard = ''
  socket.on('data', (chunk: Buffer) => {
    heard += chunk.toString('latin1')
  })
  // A reset is a close, too; what was heard before tells whether an answer came.
  socket.on('error', () => {})
  return { socket, heard: () => heard, closed: once(socket, 'close') }
}

async function served(listener: RequestListener) {
  const server = createServer(listener)
  return { server, origin: await listening(server) }
}

const answers = (text: string) => text.split('HTTP/1.1 200 OK').length - 1

test('a request that is on its way on a kept connection gets its answer, and is told to go', async () => {
  const { server, origin } = await served((_, response) => response.end('x'))
  const { socket, heard, closed } = await talk(origin)
  socket.write(REQUEST)
  await until(() => answers(heard()) === 1)
  assert.doesNotMatch(heard(), /connection: close/i)
  const closing = closeServer(server)
  assert.equal(server.listening, false)
  socket.write(REQUEST)
  await closed
  assert.equal(answers(heard()), 2, heard())
  assert.match(heard(), /connection: close/i)
  await closing
})

test('a connection whose client says nothing more is closed', async () => {
  const { server, origin } = await served((_, response) => response.end('x'))
  const { socket, heard, closed } = await talk(origin)
  socket.write(REQUEST)
  await until(() => answers(heard()) === 1)
  await closeServer(server)
  await closed
})

test('what is under way is waited for, and its client may ask once more', async () => {
  const going = gate()
  let begun = 0
  const { server, origin } = await served(async (_, response) => {
    begun++
    await going.opened
    response.end('x')
  })
  const { socket, heard, closed } = await talk(origin)
  socket.write(REQUEST)
  await until(() => begun === 1)
  const closing = closeServer(server)
  going.open()
  await until(() => answers(heard()) === 1)
  socket.write(REQUEST)
  await closed
  assert.equal(answers(heard()), 2, heard())
  await closing
})

test('what takes longer than the time limit is cut', async () => {
  const never = gate()
  let begun = 0
  const { server, origin } = await served(async () => {
    begun++
    await never.opened
  })
  const { socket, heard, closed } = await talk(origin)
  socket.write(REQUEST)
  await until(() => begun === 1)
  await closeServer(server, { timeout: 20 })
  await closed
  assert.equal(heard(), '')
})

test('a server that does not listen is closed; options are checked', async () => {
  const server = createServer()
  await closeServer(server)
  await refused(closeServer(server, { timeout: -1 }), 'InvalidOption')
  await refused(closeServer(server, Object({ time: 1 })), 'InvalidOption')
})
