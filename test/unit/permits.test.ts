/** What counts as one client. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { network, Permits } from '../../src/web/permits.ts'

test('IPv4 addresses, also in their IPv6 form, are clients; of IPv6 it is the first half', () => {
  const pairs: [string, string][] = [
    ['127.0.0.1', '127.0.0.1'],
    ['::ffff:10.1.2.3', '10.1.2.3'],
    ['::FFFF:10.1.2.3', '10.1.2.3'],
    ['::1', '0:0:0:0::/64'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::', '2001:db8:1:2::/64'],
    ['2001:db8::9', '2001:db8:0:0::/64'],
    ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
    ['fe80::1:2%eth0', 'fe80:0:0:0::/64'],
    ['no address', 'no address'],
  ]
  for (const [address, client] of pairs) assert.equal(network(address), client, address)
})

test('permits: so many in all, so many for a client; freed once', () => {
  const permits = new Permits(4, 2)
  const taken = ['a', 'a', 'a', 'b', undefined].map((client) => permits.take(client))
  assert.deepEqual(
    taken.map((free) => free !== undefined),
    [true, true, false, true, true],
  )
  assert.equal(permits.take('c'), undefined)
  taken[0]?.()
  taken[0]?.()
  assert.ok(permits.take('a'))
  assert.equal(permits.take('a'), undefined)
  taken[4]?.()
  assert.equal(permits.take('a'), undefined)
  assert.ok(permits.take('b'))
})
