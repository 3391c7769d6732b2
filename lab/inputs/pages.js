// What a small web service does without its sockets: JSON, templates, buffers, gzip in workers.
// Arguments: orders in JSON, rounds.
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads')
const crypto = require('crypto')
const fs = require('fs')
const zlib = require('zlib')

function pack (text) {
  const hash = crypto.createHash('sha256')
  for (let start = 0; start < text.length; start += 20000) {
    const block = Buffer.from(text.slice(start, start + 20000))
    const back = zlib.gunzipSync(zlib.gzipSync(block, { level: 1 }))
    hash.update(Buffer.concat([back, Buffer.alloc(start % 5000, 7)]))
  }
  return hash.digest('hex')
}

if (!isMainThread) {
  parentPort.postMessage(pack(workerData))
} else {
  const text = fs.readFileSync(process.argv[2], 'utf8')
  const hashes = [0, 1].map(half => new Promise((resolve, reject) => {
    const share = text.slice(half * text.length / 2, (half + 1) * text.length / 2)
    new Worker(__filename, { workerData: share }).on('message', resolve).on('error', reject)
  }))
  let pages = 0
  for (let round = 0; round < Number(process.argv[3]); round++) {
    const orders = JSON.parse(text)
    const cities = new Map()
    for (const order of orders) {
      const rows = order.lines.map(line => `<tr><td>${line.article}</td><td>${line.count}</td></tr>`)
      const page = `<h1>${order.customer.name}</h1><table>${rows.join('')}</table>`
      cities.set(order.customer.city, (cities.get(order.customer.city) || '') + page)
    }
    for (const page of cities.values()) pages += Buffer.from(page, 'utf8').length
  }
  Promise.all(hashes).then(found => console.log(pages, found.join(' ')))
}
