import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { copyArchive, type Image, writeArchive } from './archive.ts';
import { LayerCache } from './layer.ts';
import type { TarEntry } from './tar.ts';

const folder = mkdtempSync(join(tmpdir(), 'archive-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Follows an archive from its index to the files of its layers, and checks every digest and size on the way. */
const reader = `
import gzip, hashlib, io, json, sys, tarfile
with tarfile.open(sys.argv[1], 'r:') as tar:
    def blob(descriptor):
        data = tar.extractfile('blobs/' + descriptor['digest'].replace(':', '/')).read()
        assert 'sha256:' + hashlib.sha256(data).hexdigest() == descriptor['digest'], descriptor
        assert len(data) == descriptor['size'], descriptor
        return data
    assert json.load(tar.extractfile('oci-layout')) == {'imageLayoutVersion': '1.0.0'}
    [entry] = json.load(tar.extractfile('index.json'))['manifests']
    manifest = json.loads(blob(entry))
    config = json.loads(blob(manifest['config']))
    layers = [gzip.decompress(blob(layer)) for layer in manifest['layers']]
    assert config['rootfs']['diff_ids'] == ['sha256:' + hashlib.sha256(layer).hexdigest() for layer in layers]
    names = [tarfile.open(fileobj=io.BytesIO(layer)).getnames() for layer in layers]
    print(json.dumps({'entry': entry, 'config': config, 'names': names}))`;

function readByPython(path: string): unknown {
  return JSON.parse(execFileSync('python3', ['-c', reader, path], { encoding: 'utf8' }));
}

function file(path: string, text: string): TarEntry {
  return { kind: 'file', path, content: Buffer.from(text), mode: 0o644 };
}

/** Builds a small image in a folder of its own. */
async function build(name: string, text = 'one') {
  const cache = new LayerCache(join(folder, name));
  const layers = [
    await cache.get(['base'], () => [file('etc/passwd', 'root')]),
    await cache.get(['app', text], () => [file('app/main.js', text)]),
  ];
  const image: Image = {
    reference: 'chancery.local/some:1.2.3',
    architecture: 'amd64',
    layers,
    config: {
      entrypoint: ['/usr/bin/node', '/app/main.js'],
      env: ['A=b'],
      user: '65532:65532',
      workingDirectory: '/app',
      volumes: ['/data'],
      labels: { 'org.opencontainers.image.title': 'some' },
    },
  };
  const path = join(folder, `${name}.tar`);
  return { path, cache, ...writeArchive(path, image, (layer) => readFileSync(cache.file(layer))) };
}

describe('an archive', () => {
  it('holds an image whose digests and sizes are right', async () => {
    const { path, digest } = await build('whole');
    expect(readByPython(path)).toMatchObject({
      entry: { digest, annotations: { 'io.containerd.image.name': 'chancery.local/some:1.2.3' } },
      config: {
        architecture: 'amd64',
        os: 'linux',
        config: { User: '65532:65532', WorkingDir: '/app', Volumes: { '/data': {} }, Env: ['A=b'] },
      },
      names: [
        ['etc', 'etc/passwd'],
        ['app', 'app/main.js'],
      ],
    });
  });

  it('is the same in two builds that share nothing', async () => {
    const [first, second] = [await build('first'), await build('second')];
    expect(readFileSync(first.path).equals(readFileSync(second.path))).toBe(true);
    expect(second.digest).toBe(first.digest);
  });

  it('is copied under another tag: the same image', async () => {
    const { path, digest } = await build('tagged');
    const copy = join(folder, 'copy.tar');
    copyArchive(path, copy, 'chancery.local/some:1.2.4-a-longer-tag');
    const [one, two] = [readByPython(path), readByPython(copy)] as [object, object];
    expect(two).toEqual({
      ...one,
      entry: expect.objectContaining({
        digest,
        annotations: {
          'io.containerd.image.name': 'chancery.local/some:1.2.4-a-longer-tag',
          'org.opencontainers.image.ref.name': '1.2.4-a-longer-tag',
        },
      }),
    });
  });

  it('is left alone when it holds the image already, and written anew when it is damaged', async () => {
    const { path } = await build('again');
    const good = readFileSync(path);
    const longAgo = new Date(1_000_000);
    utimesSync(path, longAgo, longAgo);
    await build('again');
    expect(statSync(path).mtimeMs).toBe(longAgo.getTime());
    writeFileSync(path, good.subarray(0, -512));
    await build('again');
    expect(readFileSync(path).equals(good)).toBe(true);
    await build('again', 'two');
    expect(readFileSync(path).equals(good)).toBe(false);
  });
});

describe('the cache of layers', () => {
  it('builds a layer once, and again when its bytes are gone', async () => {
    const cache = new LayerCache(join(folder, 'cache'));
    let built = 0;
    const make = () => {
      built += 1;
      return [file('x', 'y')];
    };
    const layer = await cache.get(['x'], make);
    expect(await new LayerCache(join(folder, 'cache')).get(['x'], make)).toEqual(layer);
    expect(built).toBe(1);
    rmSync(cache.file(layer));
    expect(await cache.get(['x'], make)).toEqual(layer);
    expect(built).toBe(2);
  });

  it('forgets what a run did not use', async () => {
    const path = join(folder, 'pruned');
    const old = await new LayerCache(path).get(['old'], () => [file('x', 'old')]);
    const cache = new LayerCache(path);
    const kept = await cache.get(['kept'], () => [file('x', 'kept')]);
    cache.prune();
    expect(statSync(cache.file(kept)).size).toBe(kept.sizeBytes);
    expect(() => statSync(cache.file(old))).toThrow(/ENOENT/);
  });
});
