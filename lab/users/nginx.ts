/** nginx before the servers, with connections to them that it keeps. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { guard } from '../../test/servers/guard.ts'
import { freePort } from '../../test/servers/ports.ts'
import { launch, type Recipe, ServerProcess } from '../../test/servers/process.ts'
import { programOf } from '../setup.ts'

/** Undefined where it is not installed. */
export function nginxVersion(): string | undefined {
  const command = programOf('nginx')
  if (command === undefined) return undefined
  return /nginx\/([\d.]+)/.exec(spawnSync(command, ['-v'], { encoding: 'utf8' }).stderr)?.[1]
}

export async function startNginx(ports: readonly number[]): Promise<{ port: number; stop(): Promise<void> }> {
  const command = programOf('nginx')
  if (command === undefined) throw new Error('nginx is not installed: apt-get install nginx')
  const folder = await guard().folder()
  const port = await freePort()
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off;
# Without a user line, its worker would be another account, which may not enter the folder. Ignored unless it is root.
${process.getuid?.() === 0 ? 'user root;' : ''}
worker_processes 1;
pid ${folder}/nginx.pid;
error_log stderr notice;
events { worker_connections 8192; }
http {
  access_log off;
  ${temporary.join('\n  ')}
  upstream users {
    ${ports.map((each) => `server 127.0.0.1:${each};`).join('\n    ')}
    keepalive 512;
    keepalive_requests 1000000;
  }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    keepalive_requests 1000000;
    location / {
      proxy_pass http://users;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
  }
}
`,
  )
  const recipe: Recipe = {
    name: 'nginx',
    url: `http://127.0.0.1:${port}`,
    port,
    folder,
    command,
    args: ['-c', join(folder, 'nginx.conf')],
    ready: /start worker process/,
    quit: 'SIGTERM',
    drop: 'SIGTERM',
  }
  const server = new ServerProcess(recipe, await launch(recipe))
  return { port, stop: () => server.stop() }
}
