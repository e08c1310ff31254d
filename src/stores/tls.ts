/** Whether a connection failed since its two ends do not agree on TLS: OpenSSL's and Node's codes, most of them for certificates. */
import { isError } from '../values/runtime/realms.ts'
export function isTlsError(error: unknown): error is Error {
  return (
    isError(error) &&
    'code' in error &&
    /^(ERR_TLS_|ERR_SSL_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|EPROTO)/.test(String(error.code))
  )
}
