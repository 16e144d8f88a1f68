from werkzeug.sansio.multipart import Data, Epilogue, File, MultipartDecoder


def read(body, boundary, step):
    decoder = MultipartDecoder(boundary)
    out = b""
    pos = 0
    while True:
        event = decoder.next_event()
        if isinstance(event, Data):
            out += event.data
        elif isinstance(event, Epilogue):
            return out
        elif not isinstance(event, File) and event is not None and type(event).__name__ == "NeedData":
            chunk = body[pos:pos + step]
            decoder.receive_data(chunk or None)
            pos += step


def test_payload_ending_in_cr_is_kept():
    payload = b"abc\r"
    body = (b"--XX\r\nContent-Disposition: form-data; name=f; filename=f.bin\r\n\r\n" + payload + b"\r\n--XX--\r\n")
    assert read(body, b"XX", len(body)) == payload
