/** What servers and their tools see of the environment: not the developer's PGHOST or REDISCLI_AUTH, nor a language for messages that we read. */
export function environment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' }
}
