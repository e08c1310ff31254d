/** A wrong call of the program. It ends with 2; other errors end it with 1. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export const HELP = `millpond: a work queue over the store you already have

  millpond serve      the queue for every language, over HTTP
  millpond --help     this text; millpond serve --help: its options
  millpond --version  the version
`

export const SERVE_HELP = `millpond serve --store URL [options]: the queue for every language, over HTTP

  --store URL               sqlite:jobs.db, memory:, redis://…, postgres://…; or MILLPOND_STORE
  --port N                  8080 unless given; 0: any that is free
  --host ADDRESS            127.0.0.1 unless given; one that others can reach needs a token
  --token-file FILE         tokens, one a line, each of 16 characters at least; or MILLPOND_TOKEN
  --allow-host NAME         a further name that Host may have where there is no token; repeatable

  --deliver QUEUE=URL       delivers the queue to a webhook; repeatable
  --webhook-secrets FILE    JSON: { "QUEUE": "whsec_…" or ["whsec_new…", "whsec_old…"] }; or MILLPOND_WEBHOOK_SECRET,
                            one or more for all, with spaces between them
  --deliver-concurrency N   requests to each webhook at once; 10 unless given
  --deliver-timeout TIME    how long a webhook may take to answer; 20s unless given
  --deliver-insecure        allows http: to other machines

  --max-body BYTES          of a request; 2097152 unless given
  --max-payload BYTES       of a job's data, result or progress; 1048576 unless given
  --max-wait TIME           longest wait of a claim or a long poll; 60s unless given
  --max-waiting N           requests of a kind that wait at once; 1000 unless given
  --max-waiting-per-client N
                            those of one address; half of --max-waiting unless given. Behind a proxy, give all
  --max-connections N       1024 unless given
  --stop-timeout TIME       how long what is under way may take after SIGTERM or SIGINT; 30s unless given
  --log-requests            a line for every answer
  --json                    lines of JSON

Times are such as 250ms, 30s, 5m, 1h. The API is described at /openapi.json and in docs/serve.md.
`
