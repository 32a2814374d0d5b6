// The target of test_v8.py. Arguments: a seed, and how many moments (v8_moment.js) are random.
"use strict";
const fs = require("fs");
const vm = require("vm");

const moment = require("./v8_moment.js");

// Situations ------------------------------------------------------------------

class Animal {
    #secret = 1;
    static kinds = 0;
    field = (() => 2)();
    constructor(label) { if (label) moment(label); }
    method(label) { return moment(label); }
    get getter() { return moment("getter"); }
    set setter(value) { moment("setter"); }
    static create(label) { return moment(label); }
    #hidden(label) { return moment(label); }
    callHidden(label) { return this.#hidden(label) + this.#secret; }
    *generate(label) { yield moment(label); }
    async wait(label) { moment(label); await null; }
}

class Dog extends Animal {
    constructor(label) { super(label); }
    method(label) { return super.method(label); }
}

function outer(label) {
    return [1].map((x) => {
        return moment(label); });
}

function manyLocals(label) {
    let source = "(function many(moment, label) {\n";
    for (let i = 0; i < 120; i++)
        source += `let local${i} = ${i};\n`;
    source += "const inner = () => { eval(''); return moment(label); };\nreturn inner();\n})";
    return vm.runInThisContext(source, { filename: "many-locals.js", lineOffset: 7 })(moment, label);
}

const situations = {
    plain: (label) => moment(label),
    callback: outer,
    method: (label) => new Dog().method(label),
    constructor: (label) => new Dog(label),
    getter: () => new Animal().getter,
    setter: () => { new Animal().setter = 1; },
    static: (label) => Animal.create(label),
    private: (label) => new Animal().callHidden(label),
    generator: (label) => [...new Animal().generate(label)],
    async: (label) => void new Animal().wait(label),
    bound: (label) => moment.bind(null, label)(),
    apply: (label) => Reflect.apply(outer, null, [label]),
    sort: (label) => { let once = 0; [3, 1, 2].sort(function compare(a, b) {
        if (!once++) moment(label);
        return a - b; }); },
    json: (label) => JSON.stringify({ toJSON() { moment(label); return 1; } }),
    reviver: (label) => JSON.parse("1", function reviver(key, value) { moment(label); return value; }),
    regexp: (label) => "abc".replace(/b/g, (found) => { moment(label); return found; }),
    proxy: (label) => new Proxy({}, { get(target, name) { moment(label); return 1; } }).any,
    iterate: (label) => { for (const x of { *[Symbol.iterator]() { moment(label); } }); },
    coerce: (label) => `${{ toString() { moment(label); return ""; } }}`,
    tagged: (label) => ((strings) => moment(label))`text`,
    eval: (label) => eval("(function inEval() {\n  return moment(label); })()"),
    newFunction: (label) => new Function("moment", "label", "return moment(label)")(moment, label),
    vm: (label) => vm.runInNewContext("function inside() {\n\n moment(label); }\ninside()", { moment, label }, { filename: "näme-✓.js" }),
    unicode: (label) => (function grüße() { return (function 名前() { return (function π𝒳() { return moment(label); })(); })(); })(),
    twoByte: (label) => vm.runInThisContext("// ✓\n(function wide(moment, label) {\r\n  /* \u2028 */ return moment(label); })")(moment, label),
    finally: (label) => { try { throw new Error("x"); } catch (e) { moment(label); } finally { moment(label); } },
    deep: (label) => (function down(n) { return n ? down(n - 1) : moment(label); })(300),
    locals: manyLocals,
    anonymous: (label) => (() => (function () { return moment(label); })())(),
    inferred: (label) => { const o = { a: {} }; o.a.b = function () { return moment(label); }; return o.a.b(); },
    defaults: (label) => ((a = moment(label)) => a)(),
    bigString: (label) => (function () { const s = "a".repeat(1000) + label; return moment(s.slice(1000)); })(),
    minified: (label) => vm.runInThisContext("(function(m,l){var a=function(b){return c(b)},c=function(d){return m(d)};return a(l)})", { filename: "bundle.min.js" })(moment, label),
};

// Random calls ----------------------------------------------------------------

let seed = Number(process.argv[2] ?? 1);
function random(n) {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    return (seed >>> 8) % n;
}

const functions = [
    function direct(n) { const x = next(n); return x + 1; },
    function twice(n) {
        let sum = 0;
        for (let i = 0; i < 2; i++) {
            sum += i ? 1 : next(n);
        }
        return sum;
    },
    function mapped(n) {
        return [n].map((x) => next(x))[0]; },
    function folded(n) { return [n, 0].reduce((sum, x) => sum + (x ? next(x) : 0),
        0); },
    function caught(n) { try { return next(n); } finally { seed |= 0; } },
    function generated(n) { function* g() { yield next(n); } return g().next().value; },
    function replaced(n) { let r; "x".replace(/x/, () => { r = next(n); return ""; }); return r; },
    function sorted(n) { let r = 0; [1, 2].sort(() => { r = r || next(n); return 0; }); return r; },
    function applied(n) { return small(n, 1) + small2.call(null, n); },
    function switched(n) {
        switch (n % 3) {
        case 0: return next(n);
        case 1:
            return next(n) + 1;
        default: return (() => next(n) + 2)(); } },
];
function small(n, m) { return tiny(n) + m; }
function tiny(n) { return next(n); }
function small2(n) { return n & 0; }
function next(n) {
    if (n <= 0)
        return moment("random");
    return functions[random(functions.length)](n - 1);
}

function main() {
    for (const [name, situation] of Object.entries(situations))
        situation(name);
    const count = Number(process.argv[3] ?? 0);
    for (let i = 0; i < count; i++) {
        moment.hot = true;
        for (let k = 0; k < 300; k++)
            next(6);
        moment.hot = false;
        next(1 + random(12));
    }
}

main();
setTimeout(function timer() {
    moment("timer");
    Promise.resolve().then(function job() {
        moment("job");
        fs.writeSync(1, "done\n");
    });
}, 1);
