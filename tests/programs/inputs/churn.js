// Work for node's own malloc: buffers, zlib streams, crypto, worker threads, JSON.
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads')
const zlib = require('zlib')
const crypto = require('crypto')

function work (seed) {
  const hash = crypto.createHash('sha256')
  for (let i = 0; i < 300; i++) {
    const block = Buffer.alloc(1000 + (seed * 7919 + i * 104729) % 60000, i & 255)
    const back = zlib.gunzipSync(zlib.gzipSync(block))
    if (!back.equals(block)) throw new Error('gzip changed the data')
    hash.update(back)
  }
  return hash.digest('hex')
}

if (!isMainThread) {
  parentPort.postMessage(work(workerData))
} else {
  const jobs = [1, 2, 3, 4].map(seed => new Promise((resolve, reject) => {
    new Worker(__filename, { workerData: seed }).on('message', resolve).on('error', reject)
  }))
  const table = {}
  for (let i = 0; i < 100000; i++) table['key' + i] = [i, 'v'.repeat(i % 50)]
  const copy = JSON.parse(JSON.stringify(table))
  Promise.all(jobs).then(hashes => {
    console.log(hashes.join('\n'))
    console.log(Object.keys(copy).length, copy.key99999[1].length)
  })
}
