/** A browser without rights is asked for a token, which it sends once, in a body. */
import { useState } from 'preact/hooks'
import { ask, messageOf } from './api.ts'
import { connect } from './live.ts'
import { Fault } from './parts.tsx'

export const Login = () => {
  const [token, setToken] = useState('')
  const [fault, setFault] = useState<string | undefined>(undefined)
  const send = async (event: Event) => {
    event.preventDefault()
    try {
      await ask('login', { token: token.trim() })
      connect()
    } catch (error) {
      setFault(messageOf(error))
    }
  }
  return (
    <form class="card login" onSubmit={send}>
      <h1>Millpond</h1>
      <label>
        Token
        <input
          type="password"
          autocomplete="current-password"
          autofocus
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
      </label>
      <Fault text={fault} />
      <button type="submit" class="solid">
        Sign in
      </button>
    </form>
  )
}
