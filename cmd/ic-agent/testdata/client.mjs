// A service in another language than Go, beside an agent: flags once and again,
// items one by one, and the state file without any agent.
// usage: node client.mjs URL SOCKET STATE_FILE
import http from "node:http";
import { readFile } from "node:fs/promises";

const [url, socket, stateFile] = process.argv.slice(2);
const limit = () => AbortSignal.timeout(10_000);
const say = (...words) => console.log(...words);

function ask(path, body, headers = {}) {
  return fetch(url + path, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
    signal: limit(),
  });
}

// The same over the socket.
function askSocket(path, body) {
  return new Promise((resolve, reject) => {
    const request = http.request(
      { socketPath: socket, path, method: "POST", headers: { "Content-Type": "application/json" }, timeout: 10_000 },
      (answer) => {
        let text = "";
        answer.setEncoding("utf8");
        answer.on("data", (part) => (text += part));
        answer.on("end", () => resolve({ status: answer.statusCode, body: JSON.parse(text) }));
      },
    );
    request.on("timeout", () => request.destroy(new Error("no answer in 10 s")));
    request.on("error", reject);
    request.end(JSON.stringify(body));
  });
}

const flags = "/ofrep/v1/evaluate/flags";
const context = { context: { targetingKey: "order-1", plan: "gold" } };

const all = await ask(flags, context);
const tag = all.headers.get("etag");
const known = new Map((await all.json()).flags.map((f) => [f.key, f]));
say("all", all.status, known.get("tier.checkout").value, known.get("tier.checkout").reason);
say("off", known.get("reviews").value, known.get("reviews").variant);

const again = await ask(flags, context, { "If-None-Match": tag });
say("again", again.status, (await again.text()).length);

const one = await (await ask(flags + "/tier.checkout", context)).json();
say("one", one.value, Number.isInteger(one.value), typeof one.metadata.ageSeconds);

const bypass = known.get("bypass.payment-risk").value;
const left = Date.parse(bypass.expiresAt) - Date.now();
say("bypass", bypass.open, bypass.under, left > 0 && left <= 15 * 60_000);

const nobody = await ask(flags + "/nobody-knows", context);
say("unknown", nobody.status, (await nobody.json()).errorCode);
const bad = await ask(flags, { context: "gold" });
say("bad context", bad.status, (await bad.json()).errorCode);

const may = async (minor) => (await ask("/v1/allow", { control: "payment-risk", amount: { minor, currency: "USD" } })).json();
const small = await may(4999);
say("4999", small.allowed, small.expires_at === bypass.expiresAt);
say("5000", (await may(5000)).allowed, (await may(5000)).reason);
const half = await ask("/v1/allow", { control: "payment-risk", amount: { minor: 49.99, currency: "USD" } });
say("49.99", half.status);

const by = await askSocket("/v1/allow", { control: "payment-risk", service: "checkout", amount: { minor: 1, currency: "USD" } });
say("socket", by.status, by.body.allowed);

const state = JSON.parse(await readFile(stateFile, "utf8"));
const age = (Date.now() - Date.parse(state.as_of)) / 1000;
say("file", state.v, state.services.checkout.tier, state.features.reviews.on, age >= 0 && age < 30, state.bypasses.length);
