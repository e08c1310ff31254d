/** Forms and JSON that hooks parse: costly ones are refused before they are parsed, and none is an error of the service. */
import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { accept } from '../../src/web/index.ts'
import { acceptedId, isProblem, raw, webTest } from './serving.ts'

const MIB = 1024 * 1024
const URLENCODED = 'application/x-www-form-urlencoded'
const part = (boundary: string, name: string, value: string) =>
  `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
const multipart = (boundary: string, parts: readonly string[]) => `${parts.join('')}--${boundary}--\r\n`
const typeOf = (boundary: string) => `multipart/form-data; boundary=${boundary}`

type Parsing = (request: Request, body: () => Promise<unknown>) => Promise<unknown>

/** The ways to a form, with and without a hook. */
const FORM_WAYS: Readonly<Record<string, Parsing | undefined>> = {
  'no hook': undefined,
  'body()': (_, body) => body(),
  'request.formData()': async (request) => Object.fromEntries(await request.formData()),
  'a clone': async (request) => Object.fromEntries(await request.clone().formData()),
  'a clone of a clone': async (request) => Object.fromEntries(await request.clone().clone().formData()),
}

/** The service with the hook; asserts that the platform parsed no form meanwhile. */
async function unparsed(check: () => Promise<void>): Promise<void> {
  const count = { parsed: 0 }
  const { URLSearchParams } = globalThis
  for (const one of [Request, Response]) {
    mock.method(one.prototype, 'formData', async () => {
      count.parsed++
      return new FormData()
    })
  }
  globalThis.URLSearchParams = class extends URLSearchParams {
    constructor(...given: ConstructorParameters<typeof URLSearchParams>) {
      count.parsed++
      super(...given)
    }
  }
  try {
    await check()
    assert.equal(count.parsed, 0)
  } finally {
    globalThis.URLSearchParams = URLSearchParams
    mock.restoreAll()
  }
}

for (const [way, data] of Object.entries(FORM_WAYS)) {
  const options = data === undefined ? {} : { data }

  webTest(`${way}: forms that would cost too much to parse are refused unparsed`, async ({ pond }) => {
    const handler = accept(pond.queue('q'), options)
    const long = 'b'.repeat(71)
    const costly: [string, string][] = [
      ['a&'.repeat(MIB / 2), URLENCODED],
      ['&'.repeat(MIB), URLENCODED],
      [Array.from({ length: 1001 }, () => 'a=1').join('&'), URLENCODED],
      [multipart(long, [part(long, 'x', 'v')]), typeOf(long)],
      [
        multipart(
          'b',
          Array.from({ length: 1001 }, () => part('b', 'x', '')),
        ),
        typeOf('b'),
      ],
      ['\r\n--b'.repeat(MIB / 5), typeOf('b')],
      ['x', 'multipart/form-data'],
    ]
    await unparsed(async () => {
      for (const [body, type] of costly) await isProblem(await handler(raw(body, type)), 400, 'PayloadNotDecodable')
    })
    assert.equal((await pond.queue('q').stats()).counts.waiting, 0)
  })

  webTest(`${way}: forms as large as they may be are taken`, async ({ pond }) => {
    const handler = accept(pond.queue('q'), options)
    const names = Array.from({ length: 1000 }, (_, index) => `f${index}`)
    const longest = 'b'.repeat(70)
    const forms: [string, string][] = [
      [names.map((name) => `${name}=1`).join('&'), URLENCODED],
      [
        multipart(
          longest,
          names.map((name) => part(longest, name, '1')),
        ),
        typeOf(longest),
      ],
    ]
    for (const [body, type] of forms) {
      const job = await pond.job(await acceptedId(await handler(raw(body, type))))
      assert.deepEqual(job?.data, Object.fromEntries(names.map((name) => [name, '1'])))
    }
  })
}

webTest(
  'a hook that takes the body for another kind: 415 or 400, and the service reports nothing',
  async ({ pond }) => {
    const reported: unknown[] = []
    const onError = (error: unknown) => void reported.push(error)
    const form: Parsing = async (request) => Object.fromEntries(await request.formData())
    const json: Parsing = (request) => request.json()
    const cases: [Parsing, ReturnType<typeof raw>, number][] = [
      [form, raw('{"a":1}', 'application/json'), 415],
      [(request) => form(request.clone(), async () => {}), raw('{"a":1}', 'application/json'), 415],
      [form, raw('a=1'), 415],
      [form, raw(null), 415],
      [form, raw('no boundary', 'multipart/form-data'), 400],
      [form, raw('--x\r\nbroken', 'multipart/form-data; boundary=x'), 400],
      [json, raw('a=1', URLENCODED), 400],
      [(request) => request.clone().json(), raw('{', 'application/json'), 400],
      [json, raw(null, 'application/json'), 400],
      [json, raw(new Uint8Array([0x22, 0xff, 0x22]), 'application/json'), 400],
    ]
    for (const [data, request, status] of cases) {
      const handler = accept(pond.queue('q'), { data, onError })
      await isProblem(await handler(request), status, status === 400 ? 'PayloadNotDecodable' : undefined)
    }
    assert.deepEqual(reported, [])
  },
)
