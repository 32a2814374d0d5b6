// A server of express for test_v8.py: writes its port, and a moment (v8_moment.js) for each request.
"use strict";
const express = require("express");
const moment = require("./v8_moment.js");

const app = express();
app.use(express.json());
app.use(function authorize(request, response, next) {
    if (request.query.deny)
        throw new Error("denied");
    next();
});
const items = express.Router();
items.get("/:id", (request, response) => {
    moment("get");
    response.json({ id: request.params.id });
});
items.post("/", async function create(request, response) {
    moment("post");
    await Promise.resolve();
    moment("after await");
    response.status(201).json(request.body);
});
app.use("/items", items);
app.use(function failed(error, request, response, next) {
    moment("error");
    response.status(403).send(error.message);
});
const server = app.listen(0, "127.0.0.1", () => console.log(server.address().port));
